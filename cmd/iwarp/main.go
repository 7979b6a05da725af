// Command iwarp measures and tries out iWARP connections.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/perf"
)

type cli struct {
	Conform conformCmd `cmd:"" help:"Test whether a peer keeps to the documents, in either role."`
	Decode  decodeCmd  `cmd:"" help:"Read a capture, and judge what is in it."`
	Matrix  matrixCmd  `cmd:"" help:"Run every dialect and kind of RNIC against every other."`
	Perf    perfCmd    `cmd:"" help:"Measure Send, Write and Read beside plain TCP."`
	Probe   probeCmd   `cmd:"" help:"Ask a responder what it speaks."`
	Rping   rpingCmd   `cmd:"" help:"Ping-pong with another iwarp or with rdma-core's rping."`
	Version versionCmd `cmd:"" help:"Print the version, and what is spoken."`
}

// streams are where a command prints.
type streams struct{ out, err io.Writer }

func main() { os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr})) }

// run returns the exit status: 0 after success, 1 otherwise.
func run(args []string, std streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt is not waited for
	err := execute(ctx, args, std)
	if err == nil {
		return 0
	}
	fmt.Fprintln(std.err, "iwarp: "+oneLine(err))
	return 1
}

// helped is the panic that ends a run which was asked for help only.
type helped struct{}

func execute(ctx context.Context, args []string, std streams) error {
	parser, err := kong.New(new(cli),
		kong.Name("iwarp"),
		kong.Description("RDMA over plain TCP."),
		kong.Writers(std.out, std.err),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
		kong.Vars(startupVars()),
		kong.Vars{
			"matrix_timeout": matrix.DefaultTimeout.String(),
			"rping_port":     strconv.Itoa(rping.DefaultPort),
			"rping_size":     strconv.Itoa(rping.DefaultSize),
			"perf_duration":  perf.DefaultDuration.String(),
			"probe_timeout":  probe.DefaultTimeout.String(),
		},
	)
	if err != nil {
		return err
	}
	return parseAndRun(parser, args)
}

// parseAndRun turns the panic by which kong's help leaves into success.
func parseAndRun(parser *kong.Kong, args []string) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil, helped:
		default:
			panic(p)
		}
	}()
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	return command.Run()
}

// oneLine drops the name that some errors begin with, as it is printed anyway,
// and joins what several causes say.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "iwarp: "), "\n", "; ")
}
