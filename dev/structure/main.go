// Command structure counts how the house is built: how the files of a package depend on each other, how many methods
// and bools a type has, and how much the packages export.
//
//	go -C dev run ./structure arrows                       # the files of the root
//	go -C dev run ./structure arrows --dir internal/driver
//	go -C dev run ./structure methods QP                   # its methods and bools; without a name, of all types
//	go -C dev run ./structure exported --rev 46ba1db7      # of that revision
//
// It looks at the files that Linux on amd64 builds, without tests.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

type cli struct {
	Rev string `placeholder:"REVISION" help:"Count in this revision, as git names it (default: the files that are checked out)."`

	Arrows   arrowsCmd   `cmd:"" help:"Count the arrows between the files of a package."`
	Methods  methodsCmd  `cmd:"" help:"Count the methods and the bools of types."`
	Exported exportedCmd `cmd:"" help:"Count what the public packages export."`
}

func main() {
	var c cli
	command := kong.Parse(&c, kong.Description("Count how the packages of iwarp are built."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx, command); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context, command *kong.Context) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	s := sources{ctx: ctx, top: "."}
	if c.Rev != "" {
		dir, err := os.MkdirTemp("", "structure")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.top = dir + "/tree"
		if err := checkout.Unpack(ctx, c.Rev, s.top); err != nil {
			return err
		}
	}
	return command.Run(&s)
}
