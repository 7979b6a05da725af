// Command release makes the archives and packages by which cmd/iwarp is handed out: the program for each platform, with
// the library for unmodified programs, man pages, shell completion, documents, the unit for systemd and the licenses of
// what is in the program. It adds an installer, a formula for Homebrew, SHA256SUMS over all, and notes. Whoever builds the same commit by the same Go gets the same bytes, wherever and whenever: paths and times are
// the commit's alone.
//
//	go -C dev run ./release --out DIR                              # of the last commit
//	go -C dev run ./release --out DIR --platform linux/arm64       # may be repeated
//	go -C dev run ./release --out DIR --rev v1.0.0 --complete      # or fail
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

// platforms are those that there are archives for; .ci/run cross builds all but one of them for every change.
const platforms = "linux/amd64,linux/arm64,linux/386,darwin/arm64,darwin/amd64,windows/amd64,freebsd/amd64"

type cli struct {
	Out      string   `required:"" placeholder:"DIR" help:"The directory of the archives. It is made, and what is there is overwritten."`
	Rev      string   `default:"HEAD" placeholder:"REVISION" help:"What to build, as git names it (default: ${default}). What is not committed is left out."`
	Complete bool     `help:"Fail if something is left out, such as the library for programs where there is no compiler for it."`
	Platform []string `default:"${platforms}" placeholder:"OS/ARCH" help:"What to build for (default: ${default})."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Description("Make the release archives of cmd/iwarp. Paths are relative to the top of the repository."), kong.Vars{"platforms": platforms})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	r, err := makeRelease(ctx, ".", c.Rev, c.Out, c.Platform)
	if err != nil {
		return err
	}
	for _, m := range r.made {
		fmt.Println(m.name)
	}
	for _, what := range r.missing {
		fmt.Fprintln(os.Stderr, "release: left out:", what)
	}
	if c.Complete && len(r.missing) > 0 {
		return errors.New("the release is not complete")
	}
	return nil
}
