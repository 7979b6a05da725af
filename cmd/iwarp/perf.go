package main

import (
	"cmp"
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

// Completions are the names of all operations.
func (opName) Completions() (names []string) {
	for _, op := range perf.Ops() {
		names = append(names, op.String())
	}
	return names
}

type perfCmd struct {
	Host peerWords `arg:"" optional:"" placeholder:"HOST[:PORT]" help:"Measure against iwarp serve, or iwarp perf --listen, on this host (port: ${perf_port}). Without it, both ends are on this host."`

	Listen    stated `group:"Where" xor:"role" placeholder:"ADDR" help:"Be the server, on this address ([host][:port]), until interrupted. The client chooses what to measure."`
	Connect   stated `group:"Where" xor:"role" placeholder:"ADDR" help:"The same as the host alone."`
	Processes int    `group:"Where" default:"0" enum:"0,1,2" help:"With both ends on this host. 1: both are in this process. 2: latency is measured against a second process (default: 2, with --pcap 1)."`
	UntilEOF  bool   `name:"until-eof" hidden:"" help:"Be the server until the standard input ends."`

	Op            []opName `group:"What is measured" placeholder:"OP" help:"Operations: ${perf_ops} (default: Send, Write, Read). The others are of RFC 7306, and only iwarp knows them."`
	Size          []string `group:"What is measured" short:"s" placeholder:"N" help:"Message sizes in bytes; K and M are 2^10 and 2^20 (default: 64,4K,64K,1M)."`
	All           bool     `group:"What is measured" short:"a" help:"All sizes from 2 to 8M."`
	Duration      span     `group:"What is measured" short:"D" placeholder:"TIME" help:"Time for each figure: 400ms, 1s, or a number of seconds (default: ${perf_duration}). Over a long path it may take three times as long."`
	Iters         positive `group:"What is measured" short:"n" placeholder:"N" help:"Measure this many messages on each connection, instead of --duration. N is rounded up to fill 5 to 40 slices. #iterations counts the undisturbed slices."`
	TCP           string   `group:"What is measured" name:"tcp" enum:"on,off" default:"on" help:"off: do not measure plain TCP. It uses the server's port, as iWARP does (over SCTP another one). --pcap records only its start. With --tun it is not measured."`
	Bidirectional bool     `group:"What is measured" short:"b" help:"Measure bandwidth in both directions at once. For Reads, plain TCP then just sends the data, without requests."`
	KeepDisturbed bool     `group:"What is measured" help:"Keep slices of time that other programs disturbed. By default they are measured again. Short runs (below 200ms, or 800 --iters) keep all slices."`
	Corrupt       bool     `group:"What is measured" help:"Corrupt one byte, to check that verification notices."`

	Depth      positive  `group:"How it is sent" short:"t" placeholder:"N" help:"Messages under way, 1 to ${perf_depth} (default: 128, fewer for large ones). Plain TCP fills its socket buffers instead."`
	RXDepth    receives  `group:"How it is sent" name:"rx-depth" short:"r" placeholder:"N" help:"Receives that the peer posts for Send and Write-Imm, at least 2 and the depth, at most ${perf_depth} (default: 512, or four times the depth if that is more, within 512 KiB)."`
	QPs        positive  `group:"How it is sent" name:"qps" short:"q" default:"1" help:"Connections to measure bandwidth over."`
	Inline     byteCount `group:"How it is sent" short:"I" placeholder:"N" help:"Copy messages of up to N bytes (or K, M) into their work requests. Read and Atomic copy nothing."`
	PostList   positive  `group:"How it is sent" short:"l" placeholder:"N" help:"Messages posted together (default: 1), the depth at most."`
	CQMod      positive  `group:"How it is sent" name:"cq-mod" short:"Q" placeholder:"N" help:"Ask for a completion after every N messages (default: a quarter of the depth), the depth at most."`
	Poll       bool      `group:"How it is sent" help:"Poll before sleeping, at both ends and over plain TCP too. By default plain TCP sleeps until something arrives. iWARP spins for up to 100 us first."`
	Congestion stated    `group:"How it is sent" name:"cc" placeholder:"NAME" help:"Congestion control of all measured sockets: reno, bbr, cubic (default: the system's)."`
	Markers    bool      `group:"How it is sent" help:"Ask for markers, in both directions."`
	CRC        string    `group:"How it is sent" name:"crc" enum:"on,off" default:"on" help:"off: do without CRCs."`
	Dialect    *string   `group:"How it is sent" name:"dialect" enum:"${dialects}" placeholder:"NAME" help:"Startup dialect to start in (${enum}). The server takes all."`
	Reorder    int       `group:"How it is sent" placeholder:"N" help:"Deliver N of 100 packets late, and show how much was placed ahead of order. Needs SCTP in UDP, or a TCP in user space with --markers."`

	Table       bool `group:"Output" short:"v" aliases:"verbose" help:"Print a wide table, with perftest's names of columns, context switches, system calls and quartiles."`
	AllColumns  bool `group:"Output" help:"Print the table with every column of --json."`
	ReportGbits bool `group:"Output" help:"Print the table's bandwidths in Gb/s (10^9 bits) in place of MiB/s."`
	JSON        bool `group:"Output" name:"json" help:"Print one JSON object: docs/perf-json.md."`

	networkFlag  `group:"Connection"`
	tlsFlags     `group:"Connection"`
	startupFlags `group:"Connection"`
	pcapFlags    `group:"Connection"`
}

// Help is what --help adds.
func (*perfCmd) Help() string {
	return `Measures throughput, latency and CPU time of Send, Write and Read, beside plain TCP in the same run. All data is verified.

For example: "iwarp perf" on one host; "iwarp serve" on one and "iwarp perf HOST" on another; "iwarp perf --op Write -s 1M -D 2s".`
}

// Run is any of the three forms.
func (c *perfCmd) Run(ctx context.Context, std streams) error {
	if err := cmp.Or(c.takeHost(), c.check("perf", c.Pcap)); err != nil {
		return err
	}
	if c.Listen != "" || c.Connect != "" || c.Processes == 2 {
		if err := c.apart("perf", "there is no --listen, --connect or --processes 2"); err != nil {
			return err
		}
	}
	if c.TUN != "" && c.Listen == "" && c.Connect == "" {
		return usage("perf: --tun: needs two processes: use --listen or --connect")
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
			fmt.Fprintf(std.err, "recording to %s: results are slower\n", r.path)
		}
		if c.Listen != "" {
			return c.respond(ctx, std, r)
		}
		return c.initiate(ctx, std, r)
	})
}

// takeHost has HOST[:PORT] be --connect.
func (c *perfCmd) takeHost() error {
	switch {
	case len(c.Host) == 0:
		return nil
	case c.Listen != "":
		return usage("perf: %.60q: --listen says what this end is: leave the host out", c.Host[0])
	case c.Connect != "":
		return usage("perf: %.60q: --connect says where the server is: leave one of them out", c.Host[0])
	}
	at, err := c.Host.addr("perf")
	c.Connect = stated(at)
	return err
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
		fmt.Fprintln(std.err, "iwarp: perf: --reorder without --markers: early packets wait, because only markers show where their FPDUs begin")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := c.printer(std)
	p.unread = cancel
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
	if lost := p.lost(); lost != nil {
		return fmt.Errorf("perf: %w", lost)
	}
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
	return serveClients(ctx, std, ln)
}

// serveClients serves whoever comes, and reports each.
func serveClients(ctx context.Context, std streams, ln *perf.Listener) error {
	t := perfTally{std: std}
	err := perf.Serve(ctx, ln, t.ended)
	fmt.Fprintf(std.out, "clients: %d measured, %d interrupted, %d failed\n", t.measured, t.interrupted, t.failed)
	return err
}

// A perfTally reports clients and counts them.
type perfTally struct {
	std                           streams
	measured, interrupted, failed int
}

// ended reports the end of a client. An interrupt is no failure, at either end.
func (t *perfTally) ended(v perf.Visit) {
	var at *perf.InterruptedError
	switch {
	case v.Err == nil:
		t.measured++
		fmt.Fprintf(t.std.out, "%v: measured\n", v.Remote)
	case errors.As(v.Err, &at):
		t.interrupted++
		fmt.Fprintf(t.std.err, "%v: interrupted%s\n",
			v.Remote, wording.If(at.Side == "initiator", " by the client", ""))
	default:
		t.failed++
		fmt.Fprintf(t.std.err, "%v: %s\n", v.Remote, oneLine(v.Err))
	}
}

// listen listens for clients, and taps their connections if there is a recording.
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
