// Command history keeps the ratios of runs of iwarp perf, one line of JSON for each, and makes the tables of docs/bench
// of them.
//
//	go run ./cmd/iwarp perf --cc reno --json >perf.json
//	go -C dev run ./history add perf.json      # on the machine that measured, at the commit that was measured
//	go -C dev run ./history render             # the tables once more
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
	"github.com/goiwarp/iwarp/internal/hostinfo"
)

type cli struct {
	Dir string `default:"docs/bench" placeholder:"DIR" help:"Where history.jsonl and README.md are (default: ${default})."`

	Add    addCmd    `cmd:"" help:"Append a run, and make the tables."`
	Render renderCmd `cmd:"" help:"Make the tables."`
}

type addCmd struct {
	File string `arg:"" placeholder:"FILE" help:"What iwarp perf --json has printed. -: standard input."`
	Note string `placeholder:"TEXT" help:"What there is to know about the run."`
}

type renderCmd struct{}

func main() {
	var c cli
	command := kong.Parse(&c, kong.Description("Keep a history of what iwarp perf measures. Paths are relative to the top of the repository."))
	err := checkout.Enter()
	if err == nil {
		err = command.Run(&c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

// Run appends a run.
func (a *addCmd) Run(c *cli) error {
	text, err := a.read()
	if err != nil {
		return err
	}
	sources, err := checkout.Here(context.Background(), 12)
	if err != nil {
		return err
	}
	r, err := newRun(text)
	if err != nil {
		return fmt.Errorf("%s: %w", a.File, err)
	}
	r.Date, r.State, r.Machine, r.Note = time.Now().UTC().Format(time.DateOnly), sources, hostinfo.This(), a.Note
	if err := appendRun(c.Dir, r); err != nil {
		return err
	}
	return render(c.Dir)
}

func (a *addCmd) read() ([]byte, error) {
	if a.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(a.File)
}

// Run makes the tables.
func (renderCmd) Run(c *cli) error { return render(c.Dir) }
