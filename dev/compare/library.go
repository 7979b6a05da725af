package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// onLibrary is what perftest's programs are called, unmodified on the library of package programs.
const onLibrary = "perftest on iwarp"

// ownPerf is the tool that they are compared with.
const ownPerf = "iwarp perf"

// A libraryStudy is what perftest's programs make of works on the library, beside other tools.
type libraryStudy struct {
	Values  []beside  `json:"values"`
	Missing []missing `json:"missing"`
}

// A beside is what one tool makes of one work, where ratios are those to iwarp perf.
type beside struct {
	value

	// More is the median of what the rounds' figures have more than those of iwarp perf.
	More      float64 `json:"more"`
	MoreLower float64 `json:"more_lower_quartile"`
	MoreUpper float64 `json:"more_upper_quartile"`
}

// libraryWorks are those that perftest has.
func libraryWorks() []work {
	return []work{workOf("latency-64"), leastWork(), workOf("rate-64"), workOf("bandwidth-1m")}
}

// perftest is its programs on the library, which the command iwarp in that file loads.
func perftest(iwarp string, limit time.Duration) *program {
	type test struct {
		args   []string
		column string
		scale  float64 // to what parse of a program returns
	}
	tests := map[string]test{
		"latency-64":   {[]string{"ib_send_lat", "-n", "20000"}, "t_typical[usec]", 1e3},
		least:          {[]string{"ib_send_lat", "-n", "20000"}, "t_min[usec]", 1e3},
		"rate-64":      {[]string{"ib_send_bw", "-n", "200000"}, "MsgRate[Mpps]", 1e6},
		"bandwidth-1m": {[]string{"ib_write_bw", "-n", "2000"}, "MsgRate[Mpps]", 1e6},
	}
	return &program{
		label: onLibrary, file: iwarp, pkg: "perftest", limit: limit,
		env: []string{"IWARP_LIBRARY=" + filepath.Dir(iwarp)},
		command: func(w work, port int, _ string) (server, client []string, ok bool) {
			t, ok := tests[w.key]
			server = append([]string{"run"}, t.args...)
			server = append(server, "-R", "-F", "-s", fmt.Sprint(w.size), "-p", fmt.Sprint(port))
			client = append(append([]string{}, server...), loopback)
			return server, client, ok
		},
		parse: func(w work, out []byte) (float64, error) {
			x, err := perftestFigure(string(out), tests[w.key].column)
			return x * tests[w.key].scale, err
		},
	}
}

// measureLibrary gives each tool its turn at each work of perftest's, round by round. What cannot be had is named.
func (c *cli) measureLibrary(ctx context.Context, own *own, rec *record) error {
	rec.Library = new(libraryStudy)
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unmodified := perftest(filepath.Join(dir, "iwarp"), libraryLimit)
	if err := errors.Join(c.provide(ctx, &program{file: "ib_write_bw", pkg: "perftest"}),
		buildLibrary(ctx, unmodified)); err != nil {
		rec.Library.Missing = []missing{{Tool: onLibrary, Reason: err.Error()}}
		return nil
	}
	tools := []tool{unmodified}
	for _, p := range []*program{ucx(c.Limit), libfabric(c.Limit)} {
		if p.installed() {
			tools = append(tools, p)
		}
	}
	own.perftests = true
	defer func() { own.perftests = false }()
	return c.turnsOf(ctx, own, append(own.tools(), tools...), rec.Library)
}

// libraryLimit is how long a program of perftest may take for a turn: 2000 messages of 1 MiB, on a busy machine.
const libraryLimit = time.Minute

func (c *cli) turnsOf(ctx context.Context, own *own, tools []tool, to *libraryStudy) error {
	all := newTurns()
	for round := range c.Rounds {
		own.nextRound()
		for _, w := range libraryWorks() {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s, beside programs on the library\n", round+1, c.Rounds, w.title)
			for _, t := range turned(tools, round) {
				if err := all.runTurn(ctx, round, t, w, ""); err != nil {
					return err
				}
			}
		}
	}
	to.Values, to.Missing = all.besides(tools), all.missing(libraryWorks(), tools)
	return nil
}

// buildLibrary builds iwarp, and the library beside it.
func buildLibrary(ctx context.Context, p *program) error {
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(ctx, "go", "build", "-o", p.file, "./cmd/iwarp"),
		p.exec(ctx, []string{"run", "--build"}),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %.500s", err, out)
		}
	}
	return nil
}

// besides sums the turns up, beside iwarp perf.
func (t *turns) besides(tools []tool) (all []beside) {
	for _, w := range libraryWorks() {
		base := t.figures[[2]string{w.key, ownPerf}]
		for _, by := range tools {
			figures := t.figures[[2]string{w.key, by.name()}]
			if len(figures) == 0 {
				continue
			}
			b := beside{value: newValue(w, by.name(), figures, base)}
			b.More, b.MoreLower, b.MoreUpper = quartiles(figures.beside(base,
				func(x, y float64) float64 { return x - y }))
			all = append(all, b)
		}
	}
	return all
}

// perftestOptions are those of iwarp perf for the works of perftest, which polls: so does iwarp perf where latency is
// measured, and nothing is measured again that the rest of the machine has disturbed, as perftest cannot tell.
func perftestOptions(w work) perf.Options {
	return perf.Options{
		Ops: []perf.Op{w.op}, Sizes: []int{w.size}, Duration: 4 * turnTime,
		Poll: w.quantity == perf.Latency, KeepDisturbed: true,
	}
}

// libraryTable has a row for each work and tool.
func libraryTable(rec *record) string {
	var b strings.Builder
	l := rec.Library
	if l == nil {
		l = &libraryStudy{}
	}
	rounds := 0
	for _, v := range l.Values {
		rounds = max(rounds, v.Rounds)
	}
	if rounds > 0 {
		b.WriteString(mediansOf(rounds) + "\n\n")
	}
	b.WriteString(report.MarkdownHeading("work", "tool", "median", "quartiles", "ratio to "+ownPerf, "quartiles",
		"more than "+ownPerf, "quartiles"))
	for _, v := range l.Values {
		b.WriteString(report.MarkdownRow(slices.Concat([]string{workOf(v.Work).title, v.toolText(rounds)},
			v.figureCells(), v.ratio().cells(v.Rounds), v.moreCells())...))
	}
	var figures []value
	for _, v := range l.Values {
		figures = append(figures, v.value)
	}
	for i, m := range slices.Concat(l.Missing, lacking(libraryWorks(), figures)) {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(missingLine(m))
	}
	return b.String()
}

// moreCells are what a tool takes more and the quartiles of that, as far as those of the ratio are there: both are of
// the same pairs of figures. Of rates the ratio says it.
func (v beside) moreCells() []string {
	if !workOf(v.Work).less {
		return []string{"", ""}
	}
	cells := v.ratio().cells(v.Rounds)
	if cells[0] != unrepeated && cells[0] != "-" {
		cells[0] = signed(v.More) + " " + v.Unit
	}
	if cells[1] != "-" {
		cells[1] = signed(v.MoreLower) + " to " + signed(v.MoreUpper)
	}
	return cells
}

// signed is short of what may be less than nothing.
func signed(x float64) string {
	if x < 0 {
		return "-" + short(-x)
	}
	return short(x)
}
