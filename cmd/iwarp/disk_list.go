package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"text/tabwriter"

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
		return fmt.Errorf("%s: %w", option, err)
	}
	return printEntries(std.out, entries)
}

// printEntries prints the log of a discovery controller, a line for each way to a subsystem.
func printEntries(w io.Writer, entries []capsule.DiscoveryEntry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TRANSPORT\tADDRESS\tKIND\tSUBSYSTEM")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Transport, net.JoinHostPort(e.Address, e.Service), e.Type, e.SubsystemNQN)
	}
	return t.Flush()
}

// listDisks prints the namespaces of a subsystem.
func (c *diskCmd) listDisks(ctx context.Context, std streams, over *network.Network, option string, at diskURL) error {
	d, name, err := c.hostDialer(over)
	if err != nil {
		return err
	}
	controller, err := d.Dial(ctx, name, at.at, at.nqn)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	defer controller.Close()
	all, err := controller.Namespaces(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	i := controller.Identity()
	fmt.Fprintf(std.out, "%s %s, firmware %s, serial number %s\n", at.nqn, i.Model, i.Firmware, i.Serial)
	return printDisks(std.out, all)
}

func printDisks(w io.Writer, all []*host.Namespace) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tOCTETS\tBLOCK\tUUID")
	for _, n := range all {
		uuid := "-"
		if id, ok := n.UUID(); ok {
			uuid = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\n", n.ID(), n.Size(), n.BlockSize(), uuid)
	}
	return t.Flush()
}
