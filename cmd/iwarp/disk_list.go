package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/nvmf/capsule"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// list prints what a target has.
func (c *diskCmd) list(ctx context.Context, std streams, over *network.Network) error {
	const option = "disk: --list"
	at, err := parseDiskURL(option, c.List)
	if err != nil {
		return err
	}
	if at.nqn != "" {
		return c.listDisks(ctx, std, over, option, at)
	}
	d, name, err := c.hostDialer(over)
	if err != nil {
		return err
	}
	entries, err := d.Discover(ctx, name, at.at)
	if err != nil {
		return &namedError{option, err}
	}
	return printEntries(std.out, entries)
}

// printEntries prints the log of a discovery controller, a line for each way to a subsystem.
func printEntries(w io.Writer, entries []capsule.DiscoveryEntry) error {
	rows := [][]string{{"TRANSPORT", "ADDRESS", "KIND", "SUBSYSTEM"}}
	for _, e := range entries {
		rows = append(rows, []string{fmt.Sprint(e.Transport), net.JoinHostPort(e.Address, e.Service), fmt.Sprint(e.Type), e.SubsystemNQN})
	}
	return printColumns(w, "", rows)
}

// listDisks prints the namespaces of a subsystem.
func (c *diskCmd) listDisks(ctx context.Context, std streams, over *network.Network, option string, at diskURL) error {
	controller, err := c.controller(ctx, over, at)
	if err != nil {
		return &namedError{option, err}
	}
	defer controller.Close()
	all, err := controller.Namespaces(ctx)
	if err != nil {
		return &namedError{option, err}
	}
	i := controller.Identity()
	return printDisks(std.out, fmt.Sprintf("%s %s, firmware %s, serial number %s", at.nqn, i.Model, i.Firmware, i.Serial), all)
}

func printDisks(w io.Writer, head string, all []*host.Namespace) error {
	rows := [][]string{{"NAMESPACE", "OCTETS", "BLOCK", "UUID"}}
	for _, n := range all {
		uuid := "-"
		if id, ok := n.UUID(); ok {
			uuid = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		}
		rows = append(rows, []string{fmt.Sprint(n.ID()), fmt.Sprint(n.Size()), fmt.Sprint(n.BlockSize()), uuid})
	}
	return printColumns(w, head, rows)
}
