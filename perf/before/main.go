// Command before compares benchmarks of today with those of an earlier revision, by the processor time that they take. It builds both, and runs them
// in turns, so that what else the machine does falls on both; beside it stands the earlier one against itself, which is what such a ratio is worth.
//
//	go run ./perf/before --rev 'v1.0.0' --bench Write1M --bench Send64 ./internal/engine
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/report"
)

type cli struct {
	Package string   `arg:"" placeholder:"PACKAGE" help:"The package of the benchmarks, such as ./internal/engine."`
	Rev     string   `required:"" placeholder:"REVISION" help:"The earlier revision, as git names it. It must have the benchmarks, too."`
	Than    string   `placeholder:"REVISION" help:"The later revision (default: what lies in the directory)."`
	Bench   []string `required:"" placeholder:"REGEXP" help:"Benchmarks that make a row, as go test -bench takes them. May be repeated."`
	Rounds  int      `default:"9" placeholder:"N" help:"How often each is run: twice in each round (default: ${default})."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Description("Compare benchmarks with those of an earlier revision. Run it from the top of the repository."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "before:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context) error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds: %d: there is one at least", c.Rounds)
	}
	dir, err := os.MkdirTemp("", "before")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	then, err := c.build(ctx, dir, "then", c.Rev)
	if err != nil {
		return err
	}
	now, err := c.build(ctx, dir, "now", c.Than)
	if err != nil {
		return err
	}
	fmt.Print(report.MarkdownHeading("benchmark", "later, divided by before", "quartiles", "before, divided by itself", "quartiles"))
	for _, bench := range c.Bench {
		row, err := compare(c.Rounds, runner(ctx, then, bench), runner(ctx, now, bench))
		if err != nil {
			return err
		}
		fmt.Print(report.MarkdownRow(append([]string{"`" + bench + "`"}, row.cells()...)...))
	}
	return nil
}

// build builds the tests of a revision, or of what lies in the directory.
func (c *cli) build(ctx context.Context, dir, name, rev string) (binary string, err error) {
	binary = filepath.Join(dir, name+".test")
	if rev == "" {
		return binary, command(ctx, ".", "go", "test", "-trimpath", "-c", "-o", binary, c.Package)
	}
	archive, tree := filepath.Join(dir, name+".tar"), filepath.Join(dir, name)
	if err := command(ctx, ".", "git", "archive", "--format=tar", "--output="+archive, rev); err != nil {
		return "", err
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		return "", err
	}
	if err := command(ctx, tree, "tar", "-xf", archive); err != nil {
		return "", err
	}
	return binary, command(ctx, tree, "go", "test", "-trimpath", "-c", "-o", binary, c.Package)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// A run carries out benchmarks so many times, and returns the processor time of that.
type run func(times int) (time.Duration, error)

// runner runs benchmarks of a test binary on one processor: garbage is collected on that, too.
func runner(ctx context.Context, binary, bench string) run {
	return func(times int) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+bench, fmt.Sprintf("-test.benchtime=%dx", times), "-test.cpu=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%s: %w\n%s", bench, err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
}
