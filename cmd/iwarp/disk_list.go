package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/terminal"
	"github.com/goiwarp/iwarp/internal/wording"
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
	d, name, err := c.hostDialer(over, at.at)
	if err != nil {
		return err
	}
	entries, err := d.Discover(ctx, name, at.at)
	if err != nil {
		return &namedError{option, err}
	}
	return c.listed(std, "", entriesOf(entries))
}

// listDisks prints the namespaces of a subsystem.
func (c *diskCmd) listDisks(ctx context.Context, std streams, over *network.Network, option string, at diskURL) error {
	controller, err := c.controller(ctx, std, over, option, at)
	if err != nil {
		return err
	}
	defer controller.Close()
	all, err := controller.Namespaces(ctx)
	if err != nil {
		return &namedError{option, err}
	}
	i := controller.Identity()
	head := fmt.Sprintf("%s %s, firmware %s, serial number %s", at.nqn, i.Model, i.Firmware, i.Serial)
	return c.listed(std, head, disksOf(at.nqn, &i, all))
}

// listed prints a list, for people or for programs.
func (c *diskCmd) listed(std streams, head string, l interface{ rows() [][]string }) error {
	if c.JSON {
		return report.WriteJSON(std.out, l)
	}
	return printTold(std.out, head, l.rows())
}

// printTold prints what a target has said of itself: nothing of that ends a line, or goes to another column.
func printTold(w io.Writer, head string, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = terminal.Escape(cell)
		}
	}
	return printColumns(w, terminal.Escape(head), rows)
}

// subsystemsJSON is the log of a discovery controller.
type subsystemsJSON struct {
	Subsystems []subsystemJSON `json:"subsystems"`
}

// subsystemJSON is one way to a subsystem.
type subsystemJSON struct {
	Transport string `json:"transport"`
	Address   string `json:"address"` // with the port
	Kind      string `json:"kind"`
	NQN       string `json:"nqn"`
}

func entriesOf(entries []capsule.DiscoveryEntry) *subsystemsJSON {
	l := &subsystemsJSON{Subsystems: []subsystemJSON{}}
	for _, e := range entries {
		one := subsystemJSON{fmt.Sprint(e.Transport), net.JoinHostPort(e.Address, e.Service),
			fmt.Sprint(e.Type), e.SubsystemNQN}
		l.Subsystems = append(l.Subsystems, one)
	}
	return l
}

func (l *subsystemsJSON) rows() [][]string {
	rows := [][]string{{"TRANSPORT", "ADDRESS", "KIND", "SUBSYSTEM"}}
	for _, s := range l.Subsystems {
		rows = append(rows, []string{s.Transport, s.Address, s.Kind, s.NQN})
	}
	return rows
}

// disksJSON is a subsystem.
type disksJSON struct {
	NQN      string     `json:"nqn"`
	Model    string     `json:"model"`
	Firmware string     `json:"firmware"`
	Serial   string     `json:"serial"`
	Disks    []diskJSON `json:"disks"`
}

// diskJSON is a namespace.
type diskJSON struct {
	Namespace uint32 `json:"namespace"`
	Bytes     int64  `json:"bytes"`
	Block     int    `json:"block"`
	UUID      string `json:"uuid,omitempty"`
}

func disksOf(nqn string, i *capsule.IdentifyController, all []*host.Namespace) *disksJSON {
	l := &disksJSON{NQN: nqn, Model: i.Model, Firmware: i.Firmware, Serial: i.Serial, Disks: []diskJSON{}}
	for _, n := range all {
		d := diskJSON{Namespace: n.ID(), Bytes: n.Size(), Block: n.BlockSize()}
		if id, ok := n.UUID(); ok {
			d.UUID = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		}
		l.Disks = append(l.Disks, d)
	}
	return l
}

func (l *disksJSON) rows() [][]string {
	rows := [][]string{{"NAMESPACE", "SIZE", "BLOCK", "UUID"}}
	for _, d := range l.Disks {
		uuid := "-"
		if d.UUID != "" {
			uuid = d.UUID
		}
		rows = append(rows, []string{fmt.Sprint(d.Namespace), wording.Size(d.Bytes), fmt.Sprint(d.Block), uuid})
	}
	return rows
}
