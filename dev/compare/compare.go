package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/goiwarp/iwarp/perf"
)

// plainTCP is the tool that others are compared with.
const plainTCP = "plain TCP"

// compare gives each tool its turn at each work, round by round.
func (c *cli) compare(ctx context.Context, own *own, rec *record) error {
	tools := own.tools()
	rec.Missing = nil
	for _, p := range otherPrograms(c.Limit) {
		if err := c.provide(ctx, p); err != nil {
			rec.Missing = append(rec.Missing, missing{Tool: p.label, Reason: err.Error()})
			fmt.Fprintf(os.Stderr, "%s is missing: %v\n", p.label, err)
			continue
		}
		tools = append(tools, p)
	}
	all := newTurns()
	for round := range c.Rounds {
		own.nextRound()
		for _, w := range works() {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, c.Rounds, w.title)
			for _, t := range turned(tools, round) {
				if err := all.runTurn(ctx, round, t, w, c.cc()); err != nil {
					return err
				}
			}
		}
	}
	rec.CC, rec.Rounds = c.cc(), c.Rounds
	rec.Values = all.values(tools)
	rec.Missing = append(rec.Missing, all.missing(works(), tools)...)
	return nil
}

// cc is the congestion control of the comparison.
func (c *cli) cc() string {
	if len(c.CC) == 0 {
		return ""
	}
	return c.CC[0]
}

// turned has another tool be the first in each round.
func turned(tools []tool, round int) []tool {
	at := round % len(tools)
	return append(append([]tool{}, tools[at:]...), tools[:at]...)
}

// provide sees to it that a program is installed.
func (c *cli) provide(ctx context.Context, p *program) error {
	switch {
	case p.installed():
		return nil
	case !c.Install:
		return fmt.Errorf("%s is not installed (Debian's package %s)", p.file, p.pkg)
	case os.Getuid() != 0:
		return fmt.Errorf("%s is not installed; as root, compare installs Debian's package %s", p.file, p.pkg)
	}
	fmt.Fprintf(os.Stderr, "installing %s\n", p.pkg)
	for _, args := range [][]string{{"-q", "update"}, {"-q", "install", "-y", "--no-install-recommends", p.pkg}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(cmd.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get cannot install %s: %w: %.200s", p.pkg, err, out)
		}
	}
	if !p.installed() {
		return fmt.Errorf("Debian's package %s has no %s", p.pkg, p.file) //nolint:staticcheck // a name
	}
	return nil
}

// perfTime is how long each quantity is measured: twice as long as iwarp perf does unless told otherwise.
const perfTime = 2 * perf.DefaultDuration

// runPerf runs iwarp perf's usual measurement once with each congestion control.
func (c *cli) runPerf(ctx context.Context, own *own, rec *record) error {
	rec.Perf = nil
	for _, cc := range c.CC {
		report, err := perf.RunTwo(ctx, own.responder.Addr, perf.Options{CC: cc, Duration: perfTime},
			perf.Observer{Result: func(r perf.Result) {
				fmt.Fprintf(os.Stderr, "%s: %v of %d bytes\n", cc, r.Op, r.Size)
			}})
		if err != nil {
			return err
		}
		rec.Perf = append(rec.Perf, *report)
	}
	return nil
}
