// Command before compares today with an earlier revision. It builds both, and runs them in turns, so that what else
// the machine does falls on both.
//
//	go -C dev run ./before perf --rev 46ba1db7        # by pairs of runs of iwarp perf
//	go -C dev run ./before bench --rev v1.0.0 --bench Write1M --bench Send64 ./internal/engine
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

type cli struct {
	Perf  perfCmd  `cmd:"" help:"Compare time and CPU time of messages, by iwarp perf. The exit status is 1 if something has become slower."`
	Bench benchCmd `cmd:"" help:"Compare the CPU time of benchmarks."`
}

func main() {
	var c cli
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	description := kong.Description("Compare today with an earlier revision.")
	command := kong.Parse(&c, description, kong.BindTo(ctx, (*context.Context)(nil)))
	err := checkout.Enter()
	if err == nil {
		err = command.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "before:", err)
		os.Exit(1)
	}
}

// revisions are the two that are compared.
type revisions struct {
	Rev  string `required:"" placeholder:"REVISION" help:"The earlier revision, as git names it."`
	Than string `placeholder:"REVISION" help:"The later revision (default: the files that are checked out)."`
}

// build builds both with a command of go. The caller removes them.
func (r revisions) build(ctx context.Context, args ...string) (then, now string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "before")
	if err != nil {
		return "", "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	then, now = filepath.Join(dir, "then"), filepath.Join(dir, "now")
	if err = build(ctx, then, r.Rev, args); err == nil {
		err = build(ctx, now, r.Than, args)
	}
	if err != nil {
		remove()
	}
	return then, now, remove, err
}

// build builds one revision, or what is checked out. The last argument is the package.
func build(ctx context.Context, binary, rev string, args []string) error {
	tree := "."
	if rev != "" {
		tree = binary + "-tree"
		if err := checkout.Unpack(ctx, rev, tree); err != nil {
			return err
		}
	}
	last := len(args) - 1
	cmd := exec.CommandContext(ctx, "go", slices.Concat(args[:last],
		[]string{"-trimpath", "-o", binary}, args[last:])...)
	cmd.Dir, cmd.Stderr = tree, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s of %s: %w", args[0], named(rev), err)
	}
	return nil
}

func named(rev string) string {
	if rev == "" {
		return "what is checked out"
	}
	return rev
}
