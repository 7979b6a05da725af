package main

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/perf"
)

// A floor is what the machine allows at best beside the same plain TCP, however iWARP is written in user space: of
// bandwidth and CPU what a bare loop has that copies and sums each byte as iWARP must, and of latency what plain TCP
// has that polls at both ends.

// measureFloors finds the floors of goals.
func (c *cli) measureFloors(ctx context.Context, own *own, rec *record) (err error) {
	rec.Floors, err = c.measureTrials(ctx, own, "floors", floors(c.CC))
	return err
}

// floors are the floors of trials, with the works and quantities of their goals.
func floors(ccs []string) (all []trial) {
	for _, cc := range ccs {
		all = append(all, bareFloor(cc, true), bareFloor(cc, false))
		for work, opts := range map[string]perf.Options{
			"64 KiB Write": {Ops: []perf.Op{perf.Write}, Sizes: []int{64 << 10}},
			"64 B Send":    {Ops: []perf.Op{perf.Send}, Sizes: []int{64}},
			"64 B Read":    {Ops: []perf.Op{perf.Read}, Sizes: []int{64}},
		} {
			all = append(all, polledFloor(newBeside(work, cc, opts)))
		}
	}
	return all
}

// bareFloor compares the bare loop with the plain TCP of a run of package perf that follows it.
func bareFloor(cc string, crc bool) trial {
	suffix := ", no CRC"
	if crc {
		suffix = ""
	}
	var goals []goal
	for _, op := range perf.AllOps() {
		goals = append(goals, goal{Work: fmt.Sprintf("1 MiB %v%s", op, suffix), CC: cc, Quantity: "bandwidth"})
		if crc {
			goals = append(goals, goal{goals[len(goals)-1].Work, cc, "CPU", 0, true})
		}
	}
	return trial{goals, func(ctx context.Context, own *own) (ratios []float64, err error) {
		bare, err := bareLoop(ctx, cc, crc, goalTime)
		if err != nil {
			return nil, err
		}
		tcp, err := own.plain(ctx, newBeside("", cc, perf.Options{Ops: []perf.Op{perf.Write}, Sizes: []int{1 << 20}}).opts)
		if err != nil {
			return nil, err
		}
		for _, g := range goals {
			if g.AtMost {
				ratios = append(ratios, bare.cpu/tcp.CPU)
			} else {
				ratios = append(ratios, bare.rate/tcp.BWAverage)
			}
		}
		return ratios, nil
	}}
}

// polledFloor compares plain TCP that polls with plain TCP that sleeps. Its runs follow each other.
func polledFloor(b *besides) trial {
	b.reach("ratio_lat", 0)
	if b.work == "64 B Send" {
		b.reach("ratio_p99", 0)
	}
	return trial{b.goals, func(ctx context.Context, own *own) (ratios []float64, err error) {
		asleep, err := own.plain(ctx, b.opts)
		if err != nil {
			return nil, err
		}
		polling := b.opts
		polling.Poll = true
		spins, err := own.plain(ctx, polling)
		if err != nil {
			return nil, err
		}
		for _, key := range b.keys {
			if key == "ratio_p99" {
				ratios = append(ratios, spins.P99/asleep.P99)
			} else {
				ratios = append(ratios, spins.Typical/asleep.Typical)
			}
		}
		return ratios, nil
	}}
}

// plain returns what plain TCP has in a run of package perf.
func (o *own) plain(ctx context.Context, opts perf.Options) (*perf.Figures, error) {
	report, err := perf.RunTwo(ctx, o.responder.Addr, opts, perf.Observer{})
	if err != nil {
		return nil, err
	}
	return report.Results[0].TCP, nil
}

// floorOf is the floor of a goal, as a cell. That of short connections is plain TCP with as many round trips.
func (r *record) floorOf(want goal) string {
	if want.Work == shortWork && len(r.Short) > 2 { // the last is iwarp
		rate := r.Short[1].Rate.Median / 1000
		return spreadOf{rate, rate, rate}.text(1)
	}
	for _, f := range r.Floors {
		if f.sameAs(want) {
			return f.Found.text(f.Rounds)
		}
	}
	return "-"
}
