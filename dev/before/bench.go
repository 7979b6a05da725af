package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/goiwarp/iwarp/internal/quantile"
	"github.com/goiwarp/iwarp/internal/report"
)

type benchCmd struct {
	revisions
	Package string   `arg:"" placeholder:"PACKAGE" help:"The package of the benchmarks, such as ./internal/engine."`
	Bench   []string `required:"" placeholder:"REGEXP" help:"Benchmarks that make a row, as go test -bench takes them. May be repeated. Both revisions have them."`
	Rounds  int      `default:"9" placeholder:"N" help:"How often each is run: twice in each round (default: ${default})."`
}

// Run compares benchmarks, by the processor time that they take. Beside it stands the earlier revision against itself,
// which is what such a ratio is worth.
func (c *benchCmd) Run(ctx context.Context) error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds: %d: there is one at least", c.Rounds)
	}
	then, now, remove, err := c.build(ctx, "test", "-c", c.Package)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Print(report.MarkdownHeading(
		"benchmark", "later, divided by before", "quartiles", "before, divided by itself", "quartiles"))
	for _, bench := range c.Bench {
		row, err := compare(c.Rounds, runner(ctx, then, bench), runner(ctx, now, bench))
		if err != nil {
			return err
		}
		fmt.Print(report.MarkdownRow(append([]string{"`" + bench + "`"}, row.cells()...)...))
	}
	return nil
}

// A run carries out benchmarks so many times, and returns the processor time of that.
type run func(times int) (time.Duration, error)

// runner runs benchmarks of a test binary on one processor: garbage is collected on that, too.
func runner(ctx context.Context, binary, bench string) run {
	return func(times int) (time.Duration, error) {
		benchtime := fmt.Sprintf("-test.benchtime=%dx", times)
		cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+bench, benchtime, "-test.cpu=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%s: %w\n%s", bench, err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
}

// A row is what the rounds have found: ratios of processor time.
type row struct{ now, itself []float64 }

// cells are what follows the name in a row of the table: medians and quartiles.
func (r row) cells() (all []string) {
	for _, v := range [][]float64{r.now, r.itself} {
		lower, upper := quantile.Quartiles(v)
		all = append(all, fmt.Sprintf("%.2f", quantile.Median(v)), fmt.Sprintf("%.2f - %.2f", lower, upper))
	}
	return all
}

// compare runs both in the order before, today, today, before, so that what grows or shrinks with time favors none.
func compare(rounds int, then, now run) (r row, err error) {
	times, err := enough(then)
	if err != nil {
		return r, err
	}
	for range rounds {
		var took [4]time.Duration
		for i, run := range []run{then, now, now, then} {
			if took[i], err = run(times); err != nil {
				return r, err
			}
		}
		r.now = append(r.now, quotient(took[1], took[0]), quotient(took[2], took[3]))
		r.itself = append(r.itself, quotient(took[3], took[0]))
	}
	return r, nil
}

func quotient(a, b time.Duration) float64 { return float64(a) / float64(b) }

// Bounds of how often benchmarks are carried out: long enough that starting the program does not count.
const (
	longEnough = 500 * time.Millisecond
	most       = 1 << 30
)

// errTooShort is of a pattern that no benchmark has, for one.
var errTooShort = errors.New("the benchmarks take no time: is there one of that name, then and now?")

// enough finds how often takes long enough.
func enough(r run) (times int, err error) {
	for times = 1; times < most; times *= 4 {
		took, err := r(times)
		if err != nil || took >= longEnough {
			return times, err
		}
	}
	return 0, errTooShort
}
