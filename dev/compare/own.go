package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/perf"
)

// own measures iWARP and plain TCP with package perf, in pairs of slices. The two share a
// turn: what one run says of both is kept until the next round.
type own struct {
	responder *subprocess.Process
	turn      map[string]perf.Result
	perftests bool // it measures what perftest does, as that does: see perftestOptions
}

// turnTime is how long a quantity is measured in a turn, over each transport.
const turnTime = 100 * time.Millisecond

// newOwn starts the responder of latency, in a process of its own.
func newOwn(ctx context.Context) (*own, error) {
	p, err := subprocess.Start(ctx, os.Stderr, "--responder")
	return &own{responder: p, turn: make(map[string]perf.Result)}, err
}

// respond is the other process. It ends with its standard input.
func respond(ctx context.Context) error {
	ctx, cancel := subprocess.UntilEOF(ctx)
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	subprocess.Announce(os.Stdout, ln.Addr())
	return perf.ServeOwner(ctx, ln)
}

// measure returns the result of a work in this round.
func (o *own) measure(ctx context.Context, w work, cc string) (perf.Result, error) {
	key := fmt.Sprint(w.op, w.size)
	if r, ok := o.turn[key]; ok {
		return r, nil
	}
	report, err := o.run(ctx, w, cc)
	if err != nil {
		return perf.Result{}, err
	}
	o.turn[key] = report.Results[0]
	return o.turn[key], nil
}

// run measures bandwidth in this process, or as perftest does between two.
func (o *own) run(ctx context.Context, w work, cc string) (*perf.Report, error) {
	if o.perftests {
		return perf.Connect(ctx, o.responder.Addr, perftestOptions(w), perf.Observer{})
	}
	opts := perf.Options{Ops: []perf.Op{w.op}, Sizes: []int{w.size}, Duration: turnTime, CC: cc}
	return perf.RunTwo(ctx, o.responder.Addr, opts, perf.Observer{})
}

// nextRound forgets the results of the last.
func (o *own) nextRound() { clear(o.turn) }

// An ownTool is one of the two transports.
type ownTool struct {
	*own
	label string
	of    func(perf.Result) *perf.Figures
}

func (o *own) tools() []tool {
	name := "iwarp"
	if o.perftests {
		name = ownPerf
	}
	return []tool{
		ownTool{o, plainTCP, func(r perf.Result) *perf.Figures { return r.TCP }},
		ownTool{o, name, func(r perf.Result) *perf.Figures { return &r.Figures }},
	}
}

func (t ownTool) name() string { return t.label }

func (t ownTool) measure(ctx context.Context, w work, cc string) (float64, error) {
	r, err := t.own.measure(ctx, w, cc)
	if err != nil {
		return 0, err
	}
	f := t.of(r)
	if w.key == least {
		return w.figure(f.Min * 1e3), nil
	}
	if w.quantity == perf.Latency {
		return w.figure(f.Typical * 1e3), nil
	}
	return w.figure(f.MsgRate * 1e6), nil
}
