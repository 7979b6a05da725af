package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// A goal is a ratio that iWARP is to reach, to plain TCP's unless the quantity says otherwise.
type goal struct {
	Work     string  `json:"work"`
	CC       string  `json:"congestion_control,omitempty"`
	Quantity string  `json:"quantity"`
	Wanted   float64 `json:"wanted"`
	AtMost   bool    `json:"at_most,omitempty"` // less is better
}

// A goalValue is what was found of it, over the rounds that have a figure.
type goalValue struct {
	goal
	Rounds int      `json:"rounds"`
	Found  spreadOf `json:"found"`
}

// A trial is measured once in each round, and tells of one or more goals.
type trial struct {
	goals []goal
	// run returns a ratio for each of the goals, and 0 for what the system does not tell.
	run func(context.Context, *own) ([]float64, error)
}

// measureGoals finds what the goals are about.
func (c *cli) measureGoals(ctx context.Context, own *own, rec *record) (err error) {
	rec.Goals, err = c.measureTrials(ctx, own, "goals", trials(c.CC))
	return err
}

// measureTrials gives each trial its turn in each round.
func (c *cli) measureTrials(ctx context.Context, own *own, what string, all []trial) (values []goalValue, err error) {
	found := make(map[goal][]float64)
	for round := range c.Rounds {
		for _, t := range all {
			fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s %s\n", what, round+1, c.Rounds, t.goals[0].Work, t.goals[0].CC)
			if err := t.turn(ctx, own, found); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range all {
		for _, g := range t.goals {
			values = append(values, goalValue{g, len(found[g]), newSpread(found[g])})
		}
	}
	return values, nil
}

// turn adds what a trial finds.
func (t *trial) turn(ctx context.Context, own *own, found map[goal][]float64) error {
	ratios, err := t.run(ctx, own)
	if err != nil {
		return fmt.Errorf("%s %s: %w", t.goals[0].Work, t.goals[0].CC, err)
	}
	for i, g := range t.goals {
		if x := ratios[i]; x > 0 && !math.IsInf(x, 0) {
			found[g] = append(found[g], x)
		}
	}
	return nil
}

// trials are all that is measured, over some congestion controls.
func trials(ccs []string) (all []trial) {
	for _, cc := range ccs {
		all = append(all, largeTrials(cc)...)
		all = append(all, smallTrials(cc)...)
		all = append(all, markersTrial(cc))
		if limitsSegments {
			for _, op := range perf.AllOps() {
				all = append(all, segmentsTrial(op, cc))
			}
		}
	}
	return append(all, busyTrial())
}

// largeTrials are those of 1 MiB. TCP's bbr sends less at once than the others, and leaves more to gain. With others
// the goals are the floors: see bareLoop.
func largeTrials(cc string) (all []trial) {
	wanted, withoutCRC, cpu := 0.8, 0.85, 1.6
	if cc == "bbr" {
		wanted, withoutCRC, cpu = 0.95, 0.97, 1.5
	}
	for _, op := range perf.AllOps() {
		opts := perf.Options{Ops: []perf.Op{op}, Sizes: []int{1 << 20}}
		with := newBeside(fmt.Sprintf("1 MiB %v", op), cc, opts)
		with.reach("ratio_bw", wanted)
		with.reach("ratio_cpu", cpu)
		opts.NoCRC = true
		without := newBeside(fmt.Sprintf("1 MiB %v, no CRC", op), cc, opts)
		without.reach("ratio_bw", withoutCRC)
		all = append(all, with.trial(), without.trial())
	}
	return all
}

// smallTrials are those that a message's latency, and the number of messages, are about. Plain TCP sleeps, but where both
// poll; a latency has the floor of TCP that polls beside it.
func smallTrials(cc string) []trial {
	of := func(op perf.Op, size int) perf.Options { return perf.Options{Ops: []perf.Op{op}, Sizes: []int{size}} }
	write := newBeside("64 KiB Write", cc, of(perf.Write, 64<<10))
	write.reach("ratio_lat", 0.8)
	send := newBeside("64 B Send", cc, of(perf.Send, 64))
	send.reach("ratio_lat", 0.6)
	send.reach("ratio_p99", 1)
	send.reach("ratio_bw", 5)
	deep := newBeside("64 B Send, depth 512", cc, of(perf.Send, 64))
	deep.opts.Depth = 512
	deep.reach("ratio_bw", 8)
	polled := newBeside("64 B Send, both polling", cc, of(perf.Send, 64))
	polled.opts.Poll = true
	polled.reach("ratio_lat", 1.3)
	read := newBeside("64 B Read", cc, of(perf.Read, 64))
	read.reach("ratio_lat", 0.6)
	return []trial{write.trial(), send.trial(), deep.trial(), polled.trial(), read.trial()}
}

// A besides is a run of package perf beside plain TCP.
type besides struct {
	opts  perf.Options
	work  string
	keys  []string // of the ratios
	goals []goal
}

// goalTime is how long a quantity is measured in a turn, over each transport.
const goalTime = 400 * time.Millisecond

// newBeside has disturbed slices count: the quartiles of the rounds say what that does.
func newBeside(work, cc string, opts perf.Options) *besides {
	opts.CC, opts.Duration, opts.KeepDisturbed = cc, goalTime, true
	return &besides{opts: opts, work: work}
}

// reach adds a goal, about the ratio with such a key.
func (b *besides) reach(key string, wanted float64) {
	quantity := map[string]string{"ratio_bw": "bandwidth", "ratio_lat": "latency",
		"ratio_p99": "latency, 99 %", "ratio_cpu": "CPU"}[key]
	b.keys = append(b.keys, key)
	b.goals = append(b.goals, goal{b.work, b.opts.CC, quantity, wanted, key != "ratio_bw"})
}

func (b *besides) trial() trial {
	return trial{b.goals, func(ctx context.Context, own *own) (ratios []float64, err error) {
		report, err := perf.RunTwo(ctx, own.responder.Addr, b.opts, perf.Observer{})
		if err != nil {
			return nil, err
		}
		for _, key := range b.keys {
			ratios = append(ratios, report.Results[0].Ratio(key))
		}
		return ratios, nil
	}}
}

// markersTrial compares runs that follow each other, with markers both ways and with none: either comes first as often.
func markersTrial(cc string) trial {
	with := newBeside("", cc, perf.Options{Ops: []perf.Op{perf.Write}, Sizes: []int{1 << 20}, NoBaseline: true}).opts
	without := with
	with.Markers = true
	bandwidth := func(ctx context.Context, opts perf.Options) (float64, error) {
		report, err := perf.Run(ctx, opts, perf.Observer{})
		if err != nil {
			return 0, err
		}
		return report.Results[0].BWAverage, nil
	}
	return trial{[]goal{{"1 MiB Write, markers both ways", cc, "bandwidth beside none", 0.85, false}},
		func(ctx context.Context, _ *own) ([]float64, error) {
			var sum [2]float64
			for _, i := range []int{1, 0, 0, 1, 1, 0, 0, 1} {
				x, err := bandwidth(ctx, []perf.Options{without, with}[i])
				if err != nil {
					return nil, err
				}
				sum[i] += x
			}
			return []float64{sum[1] / sum[0]}, nil
		}}
}

// goalsText says when and where the goals were measured, on each machine, and what was found there.
func goalsText(rec *record) string {
	var b strings.Builder
	for _, r := range append([]*record{rec}, rec.with("goals")...) {
		b.WriteString(r.Measured["goals"].text())
	}
	return b.String() + goalsTable(rec)
}

// goalsTable has a row for each goal that any machine has, those too that other parts have measured, and two columns
// for each machine.
func goalsTable(rec *record) string {
	return goalsTableOf(append([]*record{rec}, rec.with("goals")...))
}

func goalsTableOf(all []*record) string {
	heading := []string{"work", "congestion control", "quantity", "wanted"}
	for _, r := range all {
		heading = append(heading, r.foundHeading(len(all) > 1), "", "floor")
	}
	var b strings.Builder
	b.WriteString(mediansOf(all[0].goalRounds()) + "\n\n")
	b.WriteString(report.MarkdownHeading(heading...))
	for _, g := range goalsOf(all) {
		row := []string{g.Work, g.CC, g.Quantity, g.wantedText()}
		for _, r := range all {
			row = append(append(row, r.foundOf(g)...), r.floorOf(g))
		}
		b.WriteString(report.MarkdownRow(row...))
	}
	return b.String()
}

// foundHeading names the machine if there are several.
func (r *record) foundHeading(several bool) string {
	if !several {
		return "found"
	}
	return "found on " + r.Measured["goals"].Machine.CPU
}

// goalsOf returns the goals of some records, each once: as the first has it.
func goalsOf(all []*record) (goals []goal) {
	for _, r := range all {
		for _, g := range slices.Concat(r.Goals, otherGoals(r)) {
			if !slices.ContainsFunc(goals, g.sameAs) {
				goals = append(goals, g.goal)
			}
		}
	}
	return goals
}

// goalRounds is how many rounds there were.
func (r *record) goalRounds() (rounds int) {
	for _, g := range r.Goals {
		rounds = max(rounds, g.Rounds)
	}
	return rounds
}

// foundOf is what a record has of a goal, in two cells.
func (r *record) foundOf(want goal) []string {
	for _, g := range r.Goals {
		if g.sameAs(want) {
			found := g.Found.text(g.Rounds)
			if g.Rounds < r.goalRounds() {
				found += fmt.Sprintf(" (%d rounds)", g.Rounds)
			}
			return []string{found, g.verdict()}
		}
	}
	for _, g := range otherGoals(r) {
		if g.sameAs(want) {
			return []string{fmt.Sprintf("%.2f", g.Found.Median), g.judged(g.Found.Median) + g.unlike(want)}
		}
	}
	return []string{"-", goalValue{}.verdict()}
}

// unlike tells what is wanted where that is another number than in the row.
func (g goal) unlike(row goal) string {
	if g.Wanted == row.Wanted {
		return ""
	}
	return " (" + g.wantedText() + ")"
}

// sameAs compares what is to be reached, but for how much, and for how many idle connections there were: that depends
// on the machine.
func (g goal) sameAs(other goal) bool {
	return g.kind() == other.kind() && g.CC == other.CC && g.Quantity == other.Quantity
}

// kind is the work without the number of idle connections.
func (g goal) kind() string { return idleCount.ReplaceAllString(g.Work, "idle") }

var idleCount = regexp.MustCompile(`[0-9]+ idle`)

// shortWork is the goal of short connections.
const shortWork = "short connections"

// otherGoals are judged by the tables of connections, idle and short ones: what was found is one figure there.
func otherGoals(rec *record) (all []goalValue) {
	add := func(work, quantity string, wanted float64, atMost bool, found float64) {
		all = append(all, goalValue{goal{work, "", quantity, wanted, atMost}, 1, spreadOf{found, found, found}})
	}
	if n := len(rec.Growth.Connections); n > 0 && rec.Growth.Connections[n-1].Count >= crowded {
		c := rec.Growth.Connections[n-1]
		add(fmt.Sprintf("%d idle connections", c.Count), "KiB of an end", 8, true, c.PerEnd/1024)
	}
	if n := len(rec.Short); n > 0 {
		plain, ours := rec.Short[0].Rate.Median, rec.Short[n-1].Rate.Median
		add(shortWork, "thousands in a second", min(8, plain/2000), false, ours/1000)
	}
	return all
}

func (g goal) wantedText() string {
	if g.AtMost {
		return fmt.Sprintf("at most %.2f", g.Wanted)
	}
	return fmt.Sprintf("at least %.2f", g.Wanted)
}

// judged says whether a ratio is what is wanted.
func (g goal) judged(x float64) string {
	if x == g.Wanted || x < g.Wanted == g.AtMost {
		return "met"
	}
	return "missed"
}

// verdict is about the median. Where a quartile is on the other side, or there are too few rounds for any, another run
// may find otherwise: and where another would have another median, nothing is known.
func (g goalValue) verdict() string {
	sure := g.Rounds >= fewest
	switch verdict := g.judged(g.Found.Median); {
	case g.Found == spreadOf{}:
		return "not measured"
	case sure && g.judged(g.Found.Lower) == g.judged(g.Found.Upper):
		return verdict
	case sure && !g.Found.repeatable(g.Rounds):
		return "inconclusive"
	default:
		return verdict + " in the median"
	}
}
