package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/quantile"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

type perfCmd struct {
	revisions
	Pairs    int           `default:"10" placeholder:"N" help:"Pairs of runs of each work; fewer than 6 give no verdict (default: ${default})."`
	Duration time.Duration `default:"1s" placeholder:"TIME" help:"How long a run measures bandwidth, and latency (default: ${default})."`
	Work     []string      `sep:"none" placeholder:"NAME" help:"Works to compare, such as 'Send 64, events' (default: all)."`
	CC       string        `name:"cc" default:"reno" placeholder:"NAME" help:"Congestion control of both (default: ${default}). Empty: the system's."`
}

// A work is what one run of iwarp perf measures.
type work struct {
	name string
	args []string
	of   []quantity
}

// A quantity is something of which less is better.
type quantity struct {
	name string
	of   func(result) float64
}

// A result is what iwarp perf has found: docs/perf-json.md. Earlier revisions have the same names for these figures.
type result = perf.Figures

var (
	each   = quantity{"time per message, us", func(r result) float64 { return 1 / r.MsgRate }}
	cpu    = quantity{"CPU per message, us", func(r result) float64 { return r.CPU }}
	median = quantity{"latency, median, us", func(r result) float64 { return r.Typical }}
	late   = quantity{"latency, 99 %, us", func(r result) float64 { return r.P99 }}
	cpuLat = quantity{"CPU per message alone, us", func(r result) float64 { return r.CPULat }}
)

// works are the works that are compared: each sleeping until something comes, and each polling.
func works() (all []work) {
	for _, w := range []work{
		{"Send 64", []string{"--op", "Send", "--size", "64"}, []quantity{each, cpu, median, late, cpuLat}},
		{"Write 64 KiB", []string{"--op", "Write", "--size", "64K"}, []quantity{each, cpu, median, cpuLat}},
		{"Write 1 MiB", []string{"--op", "Write", "--size", "1M"}, []quantity{each, cpu, median, cpuLat}},
	} {
		polling := append(slices.Clone(w.args), "--poll")
		all = append(all, work{w.name + ", events", w.args, w.of}, work{w.name + ", polling", polling, w.of})
	}
	return all
}

// errSlower is of a quantity for which the rule does not hold.
var errSlower = errors.New("the later revision is slower")

// Run compares the works of both revisions.
func (c *perfCmd) Run(ctx context.Context) error {
	if c.Pairs < 1 {
		return fmt.Errorf("--pairs: %d: there is one at least", c.Pairs)
	}
	all, err := c.wanted()
	if err != nil {
		return err
	}
	then, now, remove, err := c.build(ctx, "build", "./cmd/iwarp")
	if err != nil {
		return err
	}
	defer remove()
	runs := make([]pairs, len(all))
	for turn := range c.Pairs {
		for i, w := range all {
			fmt.Fprintf(os.Stderr, "pair %d of %d: %s\n", turn+1, c.Pairs, w.name)
			if err := runs[i].add(turn, c.runner(ctx, then, w), c.runner(ctx, now, w)); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return printTable(all, runs)
}

// wanted are the works that were asked for.
func (c *perfCmd) wanted() ([]work, error) {
	all := works()
	if len(c.Work) == 0 {
		return all, nil
	}
	var names []string
	for _, w := range all {
		names = append(names, w.name)
	}
	for _, name := range c.Work {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--work: %q is none of %q", name, names)
		}
	}
	return slices.DeleteFunc(all, func(w work) bool { return !slices.Contains(c.Work, w.name) }), nil
}

// pairs are the results of both revisions, in the order of the turns.
type pairs struct{ then, now []result }

// add runs both. Which is first alternates, so that what grows or shrinks with time favors none.
func (p *pairs) add(turn int, then, now func() (result, error)) error {
	order := []func() error{
		func() error { return keep(&p.then, then) },
		func() error { return keep(&p.now, now) },
	}
	if turn%2 == 1 {
		order[0], order[1] = order[1], order[0]
	}
	if err := order[0](); err != nil {
		return err
	}
	return order[1]()
}

func keep(all *[]result, run func() (result, error)) error {
	r, err := run()
	*all = append(*all, r)
	return err
}

// runner runs a work by the command of one revision.
func (c *perfCmd) runner(ctx context.Context, iwarp string, w work) func() (result, error) {
	args := append([]string{"perf", "--tcp=off", "--json", "--duration", c.Duration.String()}, w.args...)
	if c.CC != "" {
		args = append(args, "--cc", c.CC)
	}
	return func() (result, error) {
		cmd := exec.CommandContext(ctx, iwarp, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return result{}, err
		}
		return parse(out, w)
	}
}

// parse reads the only result of a run. One without a quantity would compare nothing.
func parse(out []byte, w work) (result, error) {
	var r struct{ Results []result }
	if err := json.Unmarshal(out, &r); err != nil {
		return result{}, err
	}
	if len(r.Results) != 1 {
		return result{}, fmt.Errorf("iwarp perf has %d results, want 1", len(r.Results))
	}
	for _, q := range w.of {
		if x := q.of(r.Results[0]); !(x > 0 && x < 1e12) {
			return result{}, fmt.Errorf("iwarp perf has no figure for %q: let it measure for longer (--duration)",
				q.name)
		}
	}
	return r.Results[0], nil
}

// printTable prints a row for each quantity of each work.
func printTable(all []work, runs []pairs) error {
	slower := 0
	fmt.Print(report.MarkdownHeading(
		"work", "quantity", "before", "later", "later, divided by before", "interval of 95 %", "verdict"))
	for i, w := range all {
		for _, q := range w.of {
			then, now, r := runs[i].compare(q)
			if r.judged && !r.holds() {
				slower++
			}
			cells := append([]string{w.name, q.name, fmt.Sprintf("%.3f", then), fmt.Sprintf("%.3f", now)}, r.cells()...)
			fmt.Print(report.MarkdownRow(cells...))
		}
	}
	fmt.Printf("\nA ratio holds if the interval of its median has 1.00 in it, or ends at %.2f or less.\n", worst)
	if slower > 0 {
		return fmt.Errorf("%w in %d of the rows", errSlower, slower)
	}
	return nil
}

// compare returns the medians of both, and the ratio.
func (p pairs) compare(q quantity) (then, now float64, r ratio) {
	var before, later, ratios []float64
	for i := range p.then {
		x, y := q.of(p.then[i]), q.of(p.now[i])
		before, later, ratios = append(before, x), append(later, y), append(ratios, y/x)
	}
	return quantile.Median(before), quantile.Median(later), newRatio(ratios)
}
