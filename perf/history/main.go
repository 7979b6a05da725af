// Command history keeps the ratios of runs of iwarp perf, one line of JSON for each, and makes the tables of docs/bench of them.
//
//	go run ./cmd/iwarp perf --cc reno --json >perf.json
//	go run ./perf/history add perf.json      # from the top of the repository, on the machine that measured, at the commit that was measured
//	go run ./perf/history render             # the tables once more
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/machine"
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
	command := kong.Parse(&c, kong.Description("Keep a history of what iwarp perf measures. Run it from the top of the repository."))
	if err := command.Run(&c); err != nil {
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
	commit, modified, err := checkout()
	if err != nil {
		return err
	}
	r, err := newRun(text)
	if err != nil {
		return fmt.Errorf("%s: %w", a.File, err)
	}
	r.Date, r.Commit, r.Modified, r.Machine, r.Note = time.Now().UTC().Format(time.DateOnly), commit, modified, machine.This(), a.Note
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

// checkout is the commit that is checked out, and whether there are changes beside it. Those of documents do not change what is measured.
func checkout() (commit string, modified bool, err error) {
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", false, fmt.Errorf("git rev-parse: %w", err)
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--", "*.go", "go.mod").Output()
	if err != nil {
		return "", false, fmt.Errorf("git status: %w", err)
	}
	return strings.TrimSpace(string(head)), len(changed) > 0, nil
}
