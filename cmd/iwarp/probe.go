package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/wording"
)

// probeCmd asks a responder what it speaks.
type probeCmd struct {
	Peer        peerWords     `arg:"" optional:"" placeholder:"HOST[:PORT]" help:"The server (default port: ${rping_port})."`
	Addr        string        `kong:"-"`
	Slow        bool          `help:"Also measure how long the server waits for a Request: up to 90 s."`
	Extensions  bool          `help:"Also test for Atomic Operations and Immediate Data (RFC 7306). This ends three connections with an error, which may crash Linux's siw from before 2026. Over TCP only."`
	Timeout     time.Duration `default:"${probe_timeout}" help:"How long to wait for each answer."`
	GiveUp      time.Duration `default:"${probe_give_up}" help:"How long to try a silent server (over TCP only), and to wait for one that has stopped answering."`
	Limit       time.Duration `default:"${probe_limit}" help:"Stop after this time and print what is known. --slow adds its own time."`
	Network     networkName   `enum:"tcp,sctp,usertcp" default:"tcp" help:"What to ask over: TCP with MPA, SCTP in UDP (RFC 5043), or with --tun a TCP in user space."`
	TUN         string        `name:"tun" placeholder:"DEVICE=ADDRESS" help:"With --network usertcp: the TUN device of Linux that connects it, and its address there. Takes root or CAP_NET_ADMIN: see iwarp rping --help."`
	PrivateData privateData   `placeholder:"TEXT" help:"Private data of the Requests, for servers that need some: text, or bytes in hex after 0x."`

	reportFlags
	pcapFlags
}

// Help says what the exit status is about.
func (probeCmd) Help() string {
	return "The exit status is 1 if the server speaks neither MPA nor DDP over SCTP, 3 if it cannot be reached or --limit has passed, and 4 if it stopped answering. docs/probe-json.md describes the JSON."
}

// Run asks, and prints the report.
func (c *probeCmd) Run(ctx context.Context, std streams) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	files, err := c.open("probe", probe.Title(c.Addr, string(c.Network)))
	if err != nil {
		return err
	}
	defer func() { err = files.finish(ctx, err) }()
	return c.record(ctx, "probe", std, func(ctx context.Context, record *recording) error {
		progress := newProgressLine(std.err)
		defer progress.clear()
		if c.Network == network.SCTP {
			return c.askSCTP(ctx, std, files, progress, record)
		}
		return c.ask(ctx, std, files, progress, record)
	})
}

// ask asks over MPA.
func (c *probeCmd) ask(ctx context.Context, std streams, files *reportFiles, progress *progressLine,
	record *recording) error {
	over, err := network.Open(c.name())
	if err != nil {
		return usage("probe: --tun: %w", err)
	}
	defer over.Close()
	over.Tap(record.tap())
	cfg := probe.Config{
		Dial: c.dial(over), Network: string(c.Network), Addr: c.Addr, Slow: c.Slow, Extensions: c.Extensions,
		Timeout: c.Timeout, GiveUp: c.GiveUp, Limit: c.Limit,
		PrivateData: []byte(c.PrivateData), Progress: progress.text,
	}
	if over.Sockets {
		cfg.Record = record.writer()
	}
	r, err := probe.Run(ctx, cfg)
	progress.clear()
	if r == nil {
		return c.unreached(err)
	}
	r.Stamp = files.stamp()
	return join(c.write(std, files, r.Report()), c.stopped(r.Stopped, err), c.verdict(r, err))
}

// unreached is the error of a run that has found nobody, with what to do about that.
func (c *probeCmd) unreached(err error) error {
	if errors.Is(err, probe.ErrNoAssociation) {
		return fmt.Errorf("%w: check that the server speaks SCTP in UDP (--network sctp), and that no firewall drops UDP to that port", err)
	}
	return err
}

// stopped is the error of a run that did not come to its end, with what to do about a peer that stopped answering.
func (c *probeCmd) stopped(at *probe.Stop, err error) error {
	switch {
	case at == nil:
		return err
	case at.Number == 1 && errors.Is(err, probe.ErrUnreachable):
		return stopped("%w: a server that takes a single connection ends like this: have it take more (rping -s -P)",
			err)
	}
	return stopped("%w: see its log, start it again, and ask again", err)
}

// askSCTP asks over SCTP in UDP.
func (c *probeCmd) askSCTP(ctx context.Context, std streams, files *reportFiles, progress *progressLine,
	record *recording) error {
	r, err := probe.RunSCTP(ctx, probe.SCTPConfig{
		Addr: c.Addr, Timeout: c.Timeout, GiveUp: c.GiveUp, Limit: c.Limit, Record: record.writer(),
		PrivateData: []byte(c.PrivateData), Progress: progress.text,
	})
	progress.clear()
	if r == nil {
		return c.unreached(err)
	}
	r.Stamp = files.stamp()
	return join(c.write(std, files, r.Report()), c.stopped(r.Stopped, err), c.verdictSCTP(r, err))
}

// name is that of the network, as package network has it.
func (c *probeCmd) name() string {
	if c.TUN != "" {
		return network.OnTUN(c.TUN)
	}
	return string(c.Network)
}

// dial connects by the TCP in user space; nil is the system's.
func (c *probeCmd) dial(over *network.Network) func(context.Context) (net.Conn, error) {
	if over.Sockets {
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		return over.DialStream(ctx, c.Addr)
	}
}

// check refuses options that nothing can be asked with.
func (c *probeCmd) check() error {
	addr, err := c.Peer.addr("probe")
	if c.Addr = addr; err != nil {
		return err
	}
	if c.Addr == "" {
		return usage("probe: give the address of a server: iwarp probe HOST")
	}
	if (c.TUN != "") != (c.Network == network.UserTCP) {
		return usage("probe: --network: %s takes a device to probe over: give --tun DEVICE=ADDRESS, too", network.UserTCP)
	}
	if err := notNegative("probe: --timeout", c.Timeout); err != nil {
		return err
	}
	if c.GiveUp <= 0 || c.Limit <= 0 {
		return usage("probe: --give-up and --limit: must be more than 0, not %v and %v", c.GiveUp, c.Limit)
	}
	if c.Slow && c.Network == network.SCTP {
		return usage("probe: --slow: works over TCP only: SCTP has no Request")
	}
	if c.Extensions && c.Network == network.SCTP {
		return usage("probe: --extensions: works over TCP only")
	}
	if err := probe.CheckPrivateData([]byte(c.PrivateData)); err != nil {
		return usage("%w", err)
	}
	return wantPeer("probe", c.Addr)
}

// verdictSCTP is the error of a peer that does not speak DDP over SCTP.
func (c *probeCmd) verdictSCTP(r *probe.SCTPReport, err error) error {
	if err != nil || r.Speaks() {
		return nil
	}
	return findings("probe: %s does not answer requests for a DDP session over SCTP", c.Addr)
}

// verdict is the error of a peer that was reached and does not speak MPA.
func (c *probeCmd) verdict(r *probe.Report, err error) error {
	switch {
	case err != nil, len(r.Dialects) > 0:
		return nil
	case r.Echo:
		return findings("probe: not MPA: %s echoes what it receives", c.Addr)
	case r.NotMPA:
		return findings("probe: not MPA: %s speaks another protocol", c.Addr)
	case len(r.NotAsked) > 0:
		return findings("probe: %s answers nothing: %s not asked (--give-up %v)",
			c.Addr, wording.Count(len(r.NotAsked), "question"), c.GiveUp)
	case r.Part() != "":
		return findings("probe: no answer of %s came whole: %s", c.Addr, r.Part())
	}
	return findings("probe: %s answers no dialect of MPA: it may be no server for iWARP, refuse these Requests, or expect TLS", c.Addr)
}
