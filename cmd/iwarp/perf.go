package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/perf"
)

type perfCmd struct {
	Listen  string `xor:"role" placeholder:"ADDR" help:"Be the responder, on this address ([host][:port]), until interrupted. The initiator states the options."`
	Connect string `xor:"role" placeholder:"ADDR" help:"Measure against the responder at this address (host[:port]). Without, both ends are in this process."`

	Op       []string      `placeholder:"OP" help:"Operations: Send, Write, Read (default: all)."`
	Size     []string      `placeholder:"N" help:"Message sizes in octets; K and M are 2^10 and 2^20 (default: 64,4K,64K,1M)."`
	Depth    int           `placeholder:"N" help:"Messages under way (default: 128, fewer for large ones)."`
	Duration time.Duration `default:"${perf_duration}" help:"Time measured for each operation, size, quantity and transport."`
	QPs      int           `name:"qps" default:"1" help:"Connections that bandwidth is measured over."`
	Markers  bool          `help:"Ask for markers, in both directions."`
	CRC      string        `name:"crc" enum:"on,off" default:"on" help:"off: do without CRCs."`
	Dialect  *string       `name:"dialect" enum:"${dialects}" placeholder:"NAME" help:"Startup dialect to start in (${enum}). The responder serves all."`
	Events   bool          `help:"Latency: sleep until a completion comes, instead of polling."`
	TCP      string        `name:"tcp" enum:"on,off" default:"on" help:"off: do not measure plain TCP beside."`
	JSON     bool          `name:"json" help:"Print one JSON object."`
	Corrupt  bool          `help:"Spoil one octet of what is sent, to see the verification fail."`

	startupFlags
	pcapFlags
}

// Run is any of the three forms.
func (c *perfCmd) Run(ctx context.Context, std streams) error {
	return c.record(ctx, std, func(ctx context.Context, r *recording) error {
		if r != nil {
			fmt.Fprintf(std.err, "what passes goes to %s, too: everything is slower than without\n", r.path)
		}
		if c.Listen != "" {
			return c.respond(ctx, std, r)
		}
		return c.initiate(ctx, std, r)
	})
}

func (c *perfCmd) initiate(ctx context.Context, std streams, r *recording) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	p := newPerfPrinter(std, c.JSON)
	watch := p.observer()
	watch.Wrap = r.wrap()
	report, err := c.measure(ctx, opts, watch)
	p.progress.clear()
	if ctx.Err() != nil {
		return errors.New("perf: interrupted")
	}
	if err != nil {
		return err
	}
	return p.finish(report)
}

func (c *perfCmd) measure(ctx context.Context, opts perf.Options, watch perf.Observer) (*perf.Report, error) {
	if c.Connect == "" {
		return perf.Run(ctx, opts, watch)
	}
	return perf.Connect(ctx, withPort(c.Connect), opts, watch)
}

func (c *perfCmd) respond(ctx context.Context, std streams, r *recording) error {
	ln, err := c.listen(ctx, r)
	if err != nil {
		return err
	}
	defer ln.Close()
	fmt.Fprintf(std.out, "listening on %v\n", ln.Addr())
	return perf.Serve(ctx, ln, func(v perf.Visit) {
		if v.Err != nil {
			fmt.Fprintf(std.err, "%v: %s\n", v.Remote, oneLine(v.Err))
			return
		}
		fmt.Fprintf(std.out, "%v: measured\n", v.Remote)
	})
}

func (c *perfCmd) listen(ctx context.Context, r *recording) (*iwarp.Listener, error) {
	if r == nil {
		return perf.Listen(ctx, withPort(c.Listen))
	}
	ln, err := r.listen(ctx, withPort(c.Listen))
	if err != nil {
		return nil, err
	}
	return perf.NewListener(ln), nil
}

func (c *perfCmd) options() (perf.Options, error) {
	o := perf.Options{
		Depth: c.Depth, Duration: c.Duration, QPs: c.QPs, Markers: c.Markers, NoCRC: c.CRC == "off",
		Kind: c.kind(), NoBaseline: c.TCP == "off", Events: c.Events, Corrupt: c.Corrupt,
	}
	if c.Peer != nil {
		o.Peer = *c.Peer
	}
	if err := c.startIn(&o); err != nil {
		return o, err
	}
	for _, name := range c.Op {
		op, err := perf.ParseOp(name)
		if err != nil {
			return o, err
		}
		o.Ops = append(o.Ops, op)
	}
	for _, text := range c.Size {
		size, err := perf.ParseSize(text)
		if err != nil {
			return o, err
		}
		o.Sizes = append(o.Sizes, size)
	}
	return o, nil
}

// startIn sets the dialect.
func (c *perfCmd) startIn(o *perf.Options) (err error) {
	name := ""
	if c.Dialect != nil {
		name = *c.Dialect
	}
	if o.Dialect, err = c.dialect(name); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

// withPort adds the default port to an address without one.
func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(addr, strconv.Itoa(perf.DefaultPort))
}
