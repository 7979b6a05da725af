// Command iwarp measures and tries out iWARP connections.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/manual"
	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/terminal"
	"github.com/goiwarp/iwarp/perf"
	"github.com/goiwarp/iwarp/stream"
)

type cli struct {
	Demo       demoCmd       `cmd:"" group:"Start here" help:"Two programs, one memory: see a Write and a Read happen."`
	Perf       perfCmd       `cmd:"" group:"Start here" help:"Measure RDMA beside plain TCP, here or to another host."`
	Run        runCmd        `cmd:"" group:"Use it" help:"Run an RDMA program (libibverbs, librdmacm) without hardware."`
	Serve      serveCmd      `cmd:"" group:"Use it" help:"Serve ping, measurements and files on one port."`
	Cp         cpCmd         `cmd:"" group:"Use it" help:"Copy files to or from an iwarp serve."`
	Cat        catCmd        `cmd:"" group:"Use it" help:"Netcat over RDMA."`
	Disk       diskCmd       `cmd:"" group:"Use it" help:"Offer or copy disks over NVMe/RDMA."`
	Decode     decodeCmd     `cmd:"" group:"Look into it" help:"Read a capture and say what is wrong in it."`
	Extcap     extcapCmd     `cmd:"" group:"Look into it" help:"Be a source of packets for Wireshark."`
	Probe      probeCmd      `cmd:"" group:"Look into it" help:"Find out what a server speaks."`
	Conform    conformCmd    `cmd:"" group:"Look into it" help:"Test a client or server against the RFCs."`
	Matrix     matrixCmd     `cmd:"" group:"Look into it" help:"Test every dialect against every other."`
	Rping      rpingCmd      `cmd:"" group:"Look into it" help:"Ping; works with rdma-core's rping."`
	Study      studyCmd      `cmd:"" group:"Look into it" help:"Measure the benefit of out-of-order placement on a lossy path."`
	Completion completionCmd `cmd:"" group:"More" help:"Print the completion script for bash, zsh or fish."`
	Man        manCmd        `cmd:"" group:"More" help:"Print a man page, or write all of them."`
	Help       helpCmd       `cmd:"" group:"More" help:"Print the help of a command."`
	Version    versionCmd    `cmd:"" group:"More" help:"Print the version, the dialects and the known peers."`

	ShowVersion versionFlag `name:"version" help:"Print the version, the dialects and the known peers."`
}

// streams are where a command prints.
type streams struct{ out, err io.Writer }

func main() { os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr})) }

// run returns the exit status. What is printed passes a guard, as it may have words of
// peers.
func run(args []string, std streams) int {
	out, errs := terminal.NewGuard(std.out), terminal.NewGuard(std.err)
	status := runGuarded(args, streams{out, errs})
	if err := out.Flush(); err != nil {
		if status == statusFine {
			fmt.Fprintln(errs, printed(err))
		}
		status = statusFailed // whatever has come of it: nobody can read it
	}
	_ = errs.Flush()
	return status
}

func runGuarded(args []string, std streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	heedAgain(ctx, stop)
	err := execute(ctx, args, std)
	status := statusOf(ctx, err)
	switch {
	case errors.As(err, new(*told)):
	case status != statusFine:
		fmt.Fprintln(std.err, printed(err))
	case err != nil:
		fmt.Fprintln(std.err, "interrupted")
	}
	return status
}

// sameInterrupt is how long after an interrupt another one is the same. timeout(1) sends its signal to the process and
// to its process group, so that it comes twice.
const sameInterrupt = 200 * time.Millisecond

// heedAgain has a second interrupt end the process at once: stop gives it back what the system does.
func heedAgain(ctx context.Context, stop func()) {
	context.AfterFunc(ctx, func() {
		time.Sleep(sameInterrupt)
		stop()
	})
}

// helped is the panic that ends a run which was asked for help only.
type helped struct{}

func execute(ctx context.Context, args []string, std streams) error {
	parser, err := newParser(ctx, std, alone(args)...)
	if err != nil {
		return err
	}
	return parseAndRun(parser, args)
}

// whatItIs is the command in a line.
const whatItIs = "RDMA in user space, over plain TCP and SCTP."

// newParser makes the parser of the command line.
func newParser(ctx context.Context, std streams, also ...kong.Option) (*kong.Kong, error) {
	return kong.New(new(cli), append([]kong.Option{
		kong.Name("iwarp"),
		kong.Description(whatItIs + "\n\n" + exitStatuses),
		kong.Writers(std.out, std.err),
		kong.Help(printHelp),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
		named(startupVars(), diskVars(), defaults()),
		numbers(),
		words(),
		kong.PostBuild(hideToConnect),
		kong.PostBuild(grouped),
		kong.PostBuild(fromEnvironment),
		kong.ValueFormatter(withoutVariables),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: helpMost}),
	}, also...)...)
}

// alone leaves the other commands out of the parser if args begin with one that has nothing to say about others: a
// short run would take most of its time to build them.
func alone(args []string) []kong.Option {
	if len(args) == 0 || slices.Contains([]string{"completion", "help", "man"}, args[0]) {
		return nil
	}
	var known bool
	var others []string
	for field := range reflect.TypeFor[cli]().Fields() {
		_, command := field.Tag.Lookup("cmd")
		switch {
		case command && strings.ToLower(field.Name) == args[0]:
			known = true
		case command:
			others = append(others, field.Name)
		}
	}
	if !known {
		return nil // which is told with the names of all
	}
	return []kong.Option{kong.IgnoreFields(`^cli\.(?:` + strings.Join(others, "|") + `)$`)}
}

// named gives each option and argument those of vars that it names, as ${name}. With kong.Vars each would have all,
// and kong looks through all that one has before it looks at its texts: most of the time of a short run went there.
func named(vars ...kong.Vars) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model.Node, func(node kong.Visitable, next kong.Next) error {
			if value, ok := node.(*kong.Value); ok {
				for _, v := range vars {
					give(value, v)
				}
			}
			return next(nil)
		})
	})
}

// give has a value know those of vars that it names.
func give(value *kong.Value, vars kong.Vars) {
	texts := value.Help + value.Default + value.Enum
	if !strings.Contains(texts, "${") {
		return // as most
	}
	for name, text := range vars {
		if strings.Contains(texts, "${"+name+"}") {
			value.Tag.Vars[name] = text
		}
	}
}

// defaults are those that the help texts tell of.
func defaults() kong.Vars {
	return kong.Vars{
		"networks":          strings.Join(network.Names(), ","),
		"matrix_networks":   strings.Join(matrix.Networks(), ","),
		"matrix_timeout":    matrix.DefaultTimeout.String(),
		"perf_port":         strconv.Itoa(perf.DefaultPort),
		"rping_port":        strconv.Itoa(rping.DefaultPort),
		"serve_connections": strconv.Itoa(serveConnections),
		"serve_grace":       serveGrace.String(),
		"serve_idle":        serveIdle.String(),
		"rping_size":        strconv.Itoa(rping.DefaultSize),
		"perf_ops":          strings.Join(opName("").Completions(), ", "),
		"perf_depth":        strconv.Itoa(perf.MaxDepth),
		"perf_duration":     perf.DefaultDuration.String(),
		"stream_ring":       strconv.Itoa(stream.DefaultRing),
		"shells":            strings.Join(manual.Shells(), ","),
		"probe_timeout":     probe.DefaultTimeout.String(),
		"probe_give_up":     probe.DefaultGiveUp.String(),
		"probe_limit":       probe.DefaultLimit.String(),
	}
}

// commands returns the names of all commands.
func commands(parser *kong.Kong) (names []string) {
	for _, c := range parser.Model.Children {
		names = append(names, c.Name)
	}
	return names
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
	if len(args) == 0 {
		printOverview(parser.Stdout, parser.Model)
		return nil
	}
	if err := mistaken(parser, args); err != nil {
		return err
	}
	command, err := parser.Parse(gathered(parser, args))
	if err != nil {
		return unparsed(err)
	}
	if err := emptyNames(command); err != nil {
		return err
	}
	warnOfVariables(parser.Stderr, command.Selected())
	if err := command.Run(parser); err != nil {
		return blamed(command, &failure{command.Selected().Name, err})
	}
	return nil
}

// unparsed has a parser's error name the command that it is about, as the commands' own errors do.
func unparsed(err error) error {
	of := new(kong.ParseError)
	if !errors.As(err, &of) {
		return err
	}
	if selected := of.Context.Selected(); selected != nil {
		return blamed(of.Context, usage("%s: %w", selected.Name, remedied(err)))
	}
	if errors.As(err, new(*fs.PathError)) { // --version, which could not print
		return err
	}
	return usage("%w; iwarp --help lists all commands", err)
}

// printed is an error as it is printed: after the name of the program.
func printed(err error) string { return "iwarp: " + oneLine(err) }

// oneLine is an error's text in one line, with what a peer has said in it escaped.
//
//housecheck:texts It prints: line ends become semicolons.
func oneLine(err error) string {
	return terminal.Escape(strings.ReplaceAll(err.Error(), "\n", "; "))
}
