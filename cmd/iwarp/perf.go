package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/perf"
)

// An opName is that of an operation.
type opName string

// Completions are those that there are.
func (opName) Completions() (names []string) {
	for _, op := range perf.Ops() {
		names = append(names, op.String())
	}
	return names
}

type perfCmd struct {
	Listen    stated `xor:"role" placeholder:"ADDR" help:"Be the responder, on this address ([host][:port]), until interrupted. The initiator states the options."`
	Connect   stated `xor:"role" placeholder:"ADDR" help:"Measure against the responder at this address (host[:port]). Without it, both ends are on this host."`
	Processes int    `default:"0" enum:"0,1,2" help:"Without --listen and --connect: 1: both ends are in this process; 2: latency is measured against a responder in a process of its own (default: 2, with --pcap 1)."`
	UntilEOF  bool   `name:"until-eof" hidden:"" help:"Be the responder until the standard input ends."`

	Op            []opName `placeholder:"OP" help:"Operations: ${perf_ops} (default: Send, Write, Read). The others are of RFC 7306, and only iwarp knows them."`
	Size          []string `short:"s" placeholder:"N" help:"Message sizes in bytes; K and M are 2^10 and 2^20 (default: 64,4K,64K,1M)."`
	Depth         positive `short:"t" placeholder:"N" help:"Messages under way, 1 to ${perf_depth} (default: 128, fewer for large ones). Plain TCP's Sends and Writes are bounded by the buffers of their sockets instead, and its Reads by this."`
	RXDepth       receives `name:"rx-depth" short:"r" placeholder:"N" help:"Receives that the peer has for the messages of Send and Write-Imm while bandwidth is measured: the depth at least, and 2, ${perf_depth} at most (default: 512, or four times the depth if that is more, but no more than fit into 512 KiB)."`
	Duration      span     `short:"D" placeholder:"TIME" help:"Time measured for each operation, size, quantity and transport, such as 400ms, or a number of seconds (default: ${perf_duration}). Over a path with a long round trip, of which slices of bandwidth are to have 20, it may be three times as much. With less than 200ms nothing is judged: see --keep-disturbed."`
	QPs           positive `name:"qps" short:"q" default:"1" help:"Connections that bandwidth is measured over."`
	Markers       bool     `help:"Ask for markers, in both directions."`
	CRC           string   `name:"crc" enum:"on,off" default:"on" help:"off: do without CRCs."`
	Dialect       *string  `name:"dialect" enum:"${dialects}" placeholder:"NAME" help:"Startup dialect to start in (${enum}). The responder serves all."`
	Poll          bool     `help:"Poll for a while before sleeping, at both ends and over plain TCP too. By default everyone sleeps until something comes."`
	Iters         positive `short:"n" placeholder:"N" help:"Messages to measure on each connection for each operation, size, quantity and transport, in place of --duration. They are cut into slices of 2 or more: there are 5 to 40, or 3 of bandwidth over a path with a long round trip, and N is rounded up to a multiple of their number. What is reported (#iterations) counts the slices that nothing has disturbed."`
	Congestion    stated   `name:"cc" placeholder:"NAME" help:"Congestion control of all sockets that are measured: reno, bbr, cubic (default: the system's)."`
	Bidirectional bool     `short:"b" help:"Measure bandwidth in both directions at once. Plain TCP then sends what Reads would fetch without being asked."`
	Inline        octets   `short:"I" placeholder:"N" help:"Copy messages of up to N bytes (K and M as with --size) with their work requests. There are none to copy for Read and Atomic."`
	PostList      positive `short:"l" placeholder:"N" help:"Messages posted together (default: 1), as many as may be under way at most: see --depth."`
	CQMod         positive `name:"cq-mod" short:"Q" placeholder:"N" help:"Ask for a completion after every N messages (default: a quarter of the depth), the depth at most."`
	TCP           string   `name:"tcp" enum:"on,off" default:"on" help:"off: leave out the measurement of plain TCP, of which --pcap records no more than how it begins, at --listen, and for which --tun has no address. It goes to the address of the responder as iWARP does; over SCTP to another port there, which the system chooses."`
	All           bool     `short:"a" help:"All sizes from 2 to 8M."`
	JSON          bool     `name:"json" help:"Print one JSON object: docs/perf-json.md."`

	KeepDisturbed bool `help:"Keep pairs of slices that the rest of the machine has disturbed. By default others are measured in their place, and a ratio that cannot be repeated is not printed. With fewer than 20 pairs for each quantity (a --duration under 200ms, --iters under 800, a long round trip) all are kept in any case, and all ratios printed; system calls are not counted."`

	AllColumns  bool `help:"Print in the table all that --json has of a result."`
	ReportGbits bool `help:"Print bandwidths in Gb/s (10^9 bits). JSON always has MiB/s."`

	Reorder int `placeholder:"N" help:"Over SCTP in UDP, and over a TCP in user space: deliver N of 100 packets late, and show how much was placed ahead of order. Over TCP that takes --markers."`

	Corrupt bool `help:"Spoil one byte of what is sent, to see the verification fail."`

	networkFlag
	tlsFlags
	startupFlags
	pcapFlags
}

// Run is any of the three forms.
func (c *perfCmd) Run(ctx context.Context, std streams) error {
	if err := c.check("perf", c.Pcap); err != nil {
		return err
	}
	if c.Listen != "" || c.Connect != "" || c.Processes == 2 {
		if err := c.apart("perf", "there is no --listen, --connect or --processes 2"); err != nil {
			return err
		}
	}
	if c.TUN != "" && c.Listen == "" && c.Connect == "" {
		return usage("perf: --tun: it is for two processes: with --listen or --connect")
	}
	if err := c.checkTLS("perf", c.Listen != "", c.over()); err != nil {
		return err
	}
	if err := c.checkUnused(); err != nil {
		return err
	}
	if c.TUN != "" {
		c.TCP = "off"
	}
	return c.record(ctx, "perf", std, func(ctx context.Context, r *recording) error {
		if r != nil {
			fmt.Fprintf(std.err, "connections are recorded in %s: everything is slower than without\n", r.path)
		}
		if c.Listen != "" {
			return c.respond(ctx, std, r)
		}
		return c.initiate(ctx, std, r)
	})
}

func (c *perfCmd) initiate(ctx context.Context, std streams, r *recording) error {
	opts, err := c.options()
	if err == nil {
		err = c.checkLoad(opts)
	}
	if err != nil {
		return err
	}
	if over := c.over(); c.Reorder > 0 && over.Streams && over.Unordered && !c.Markers {
		fmt.Fprintln(std.err, "iwarp: perf: --reorder without --markers: what comes early is placed when its turn comes, as FPDUs cannot be found before")
	}
	p := c.printer(std)
	watch := p.observer()
	if watch.Wrap, err = c.wrap("perf", c.Connect.withPort(), c.over(), r); err != nil {
		return err
	}
	if watch.WrapPlain, err = c.wrap("perf", c.Connect.withPort(), c.over(), nil); err != nil {
		return err
	}
	watch.Tap = r.tap()
	report, err := c.measure(ctx, std, opts, watch)
	p.progress.clear()
	return p.ended(ctx, opts, report, err)
}

func (c *perfCmd) measure(ctx context.Context, std streams, opts perf.Options,
	watch perf.Observer) (*perf.Report, error) {
	if c.Connect == "" {
		return c.measureHere(ctx, std, opts, watch)
	}
	return perf.Connect(ctx, c.Connect.withPort(), opts, watch)
}

func (c *perfCmd) respond(ctx context.Context, std streams, r *recording) error {
	ln, err := c.listen(ctx, r)
	if err != nil {
		return err
	}
	defer ln.Close()
	warn(std, "perf", c.over())
	subprocess.Announce(std.out, ln.Addr())
	if c.UntilEOF {
		ctx, cancel := subprocess.UntilEOF(ctx)
		defer cancel()
		return perf.ServeOwner(ctx, ln)
	}
	return serveInitiators(ctx, std, ln)
}

// serveInitiators is the responder of whoever comes, and tells of each.
func serveInitiators(ctx context.Context, std streams, ln *perf.Listener) error {
	t := perfTally{std: std}
	err := perf.Serve(ctx, ln, t.ended)
	fmt.Fprintf(std.out, "initiators: %d measured, %d interrupted, %d failed\n", t.measured, t.interrupted, t.failed)
	return err
}

// A perfTally tells of initiators and counts them.
type perfTally struct {
	std                           streams
	measured, interrupted, failed int
}

// ended tells of one that has gone. An interrupt is no failure, whichever end it came to.
func (t *perfTally) ended(v perf.Visit) {
	var at *perf.InterruptedError
	switch {
	case v.Err == nil:
		t.measured++
		fmt.Fprintf(t.std.out, "%v: measured\n", v.Remote)
	case errors.As(v.Err, &at):
		t.interrupted++
		fmt.Fprintf(t.std.err, "%v: interrupted%s\n",
			v.Remote, wording.If(at.Side == "initiator", " by the initiator", ""))
	default:
		t.failed++
		fmt.Fprintf(t.std.err, "%v: %s\n", v.Remote, oneLine(v.Err))
	}
}

// listen listens for initiators, and taps their connections if there is a recording.
func (c *perfCmd) listen(ctx context.Context, r *recording) (*perf.Listener, error) {
	if !c.over().Sockets {
		return perf.ListenTapped(ctx, c.name(), c.Listen.withPort(), r.tap())
	}
	conns, err := c.listenSockets(ctx, "perf", c.Listen.withPort(), r)
	if err != nil {
		return nil, err
	}
	return perf.NewListener(conns), nil
}

func (c *perfCmd) options() (perf.Options, error) {
	o := perf.Options{
		Network: c.name(), Reorder: c.Reorder, Depth: int(c.Depth), RXDepth: int(c.RXDepth), QPs: int(c.QPs),
		Markers: c.Markers, NoCRC: c.CRC == "off",
		Kind: c.kind(), NoBaseline: c.TCP == "off", Poll: c.Poll, CC: string(c.Congestion),
		Bidirectional: c.Bidirectional, Inline: int(min(int64(c.Inline), math.MaxInt)), PostList: int(c.PostList),
		CQMod: int(c.CQMod), Iters: int(c.Iters), Duration: time.Duration(c.Duration),
		KeepDisturbed: c.KeepDisturbed, Corrupt: c.Corrupt,
	}
	if c.Peer != nil {
		o.Peer = *c.Peer
	}
	err := c.startIn(&o)
	if err != nil {
		return o, err
	}
	if o.Ops, err = each(c.Op, perf.ParseOp); err != nil {
		return o, err
	}
	if o.Sizes, err = each(c.Size, perf.ParseSize); err != nil {
		return o, err
	}
	if c.All {
		o.Sizes = perf.AllSizes()
	}
	return o, nil
}

// each takes every text for a value.
func each[S ~string, T any](texts []S, parse func(string) (T, error)) (values []T, err error) {
	for _, text := range texts {
		v, err := parse(string(text))
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// startIn sets the dialect.
func (c *perfCmd) startIn(o *perf.Options) (err error) {
	name := ""
	if c.Dialect != nil {
		name = *c.Dialect
	}
	if o.Dialect, err = c.dialect(name); err != nil {
		return usage("perf: %w", err)
	}
	return nil
}

// withPort adds a port to an address without one, which may be one of IPv6 in brackets.
func withPort(addr string, port int) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	if strings.HasPrefix(addr, "[") && strings.HasSuffix(addr, "]") {
		addr = addr[1 : len(addr)-1]
	}
	return net.JoinHostPort(addr, strconv.Itoa(port))
}
