package main

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/monitor"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/sparse"
	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

// serveCmd is the servers of other commands on one port.
type serveCmd struct {
	Addr string `arg:"" optional:"" placeholder:"[HOST][:PORT]" help:"Where to listen (default: :${rping_port}). With port 0 a free one is taken."`

	Rping bool `default:"true" negatable:"" help:"Serve iwarp rping -c, and rdma-core's rping: requests without private data."`
	Perf  bool `default:"true" negatable:"" help:"Serve iwarp perf --connect, one measurement at a time. Plain TCP comes to the same port; over SCTP to one of its own, which the system chooses."`
	Cat   bool `default:"true" negatable:"" help:"Serve iwarp cat --connect, and rsockets programs: they get back what they send."`

	Dir      string `placeholder:"DIR" help:"Serve iwarp cp: clients may read the files in this directory."`
	Writable bool   `help:"Clients of iwarp cp may also write files to --dir, and replace files."`

	MaxConnections positive      `default:"${serve_connections}" placeholder:"N" help:"Connections at a time (default: ${default}), three quarters of them from one address. One more takes the place of the one that has been silent longest, for a second at least, or is rejected."`
	Memory         byteCount     `default:"1G" placeholder:"SIZE" help:"Memory for all connections together, such as 512M or 2G (default: ${default}). A connection that needs more than is left is refused. perf may use half of it."`
	Idle           time.Duration `default:"${serve_idle}" placeholder:"TIME" help:"How long a connection of rping, cat or cp may stand still (default: ${default}); of cp no longer than a minute. perf has a bound of its own."`
	Grace          time.Duration `default:"${serve_grace}" placeholder:"TIME" help:"How long connections may go on after an interrupt or SIGTERM (default: ${default}). A second one ends at once."`

	serviceFlags
	networkFlag
	tlsFlags
}

// The defaults.
const (
	serveConnections = 256
	serveGrace       = 10 * time.Second
	serveIdle        = 5 * time.Minute
	minServeMemory   = 16 << 20

	mostServeConnections = 1 << 20
)

// Help is what --help adds.
func (*serveCmd) Help() string {
	return `A request says by its private data which service it is for; one that says something else is rejected, with the reason, and
logged. An interrupt or SIGTERM has it accept nobody new, wait for those who are there, and end with status 0; if some are still there
after --grace, it ends them, and fails.

Files are served with --dir only: to read, and with --writable to write, too.`
}

// Run serves until it is interrupted.
func (c *serveCmd) Run(ctx context.Context, std streams) error {
	return c.logged(ctx, std, "serve", c.run(ctx, std))
}

func (c *serveCmd) run(ctx context.Context, std streams) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	over := c.over()
	defer over.Close()
	log := c.logger(std, slog.LevelInfo)
	failed := sparse.New(warnings{log.Handler()}) // strangers can cause many
	defer failed.Flush()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Logger: slog.New(failed), Limits: iwarp.Limits{Bytes: int64(c.Memory)}})
	files, err := c.files(log)
	if err != nil {
		return err
	}
	defer files.close()
	server := serve.New(serve.Config{
		Services: append(c.services(rnic), files.services()...), MaxConnections: int(c.MaxConnections), Grace: c.Grace,
		Log: log, Watch: notify(log),
	})
	c.staleTLS = func(err error) { log.Error("TLS: what the files had before is used on", "error", err.Error()) }
	ln, err := c.listenOver(ctx, "serve", c.addr(), over,
		&iwarp.ListenConfig{RNIC: rnic, Dialects: mpa.Dialects(), Messages: true})
	if err != nil {
		return err
	}
	defer rnic.Close() // if that is not done by then, and the Listener with it
	c.warn(std, "serve", over)
	stop, err := c.monitor(ctx, std, monitor.Sources{Name: "serve", State: server.State, Server: server, RNIC: rnic,
		SCTP: over, Device: "iwarp0"}, log)
	if err != nil {
		return err
	}
	defer stop()
	subprocess.Announce(std.out, ln.Addr())
	return cutShort(server.Run(ctx, ln))
}

func (c *serveCmd) checkOptions() error {
	if err := c.check("serve", ""); err != nil {
		return err
	}
	if err := cmp.Or(c.checkTLS("serve", true, c.over()), c.apart("serve", "nobody can come"),
		notNegative("serve: --grace", c.Grace)); err != nil {
		return err
	}
	switch {
	case c.Memory < minServeMemory:
		return usage("serve: --memory: want 16M or more, not %d", c.Memory)
	case c.MaxConnections > mostServeConnections:
		return usage("serve: --max-connections: want %d or fewer, not %d", mostServeConnections, c.MaxConnections)
	case c.Idle <= 0:
		return usage("serve: --idle: must be more than 0, not %v", c.Idle)
	case c.Writable && c.Dir == "":
		return usage("serve: --writable: it needs --dir DIR, the directory that clients may write to")
	case !c.Rping && !c.Perf && !c.Cat && c.Dir == "":
		return usage("serve: --no-rping, --no-perf and --no-cat: there is nothing left to serve")
	}
	return cmp.Or(c.checkService("serve"), wantListen("serve: ADDR", c.addr()))
}

// addr is where to listen.
func (c *serveCmd) addr() string { return withPort(c.Addr, rping.DefaultPort) }

// warnings are the records of a handler that are no routine: of connections that come up the server has its own.
type warnings struct{ slog.Handler }

// Enabled leaves out the others.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// services are those that are not turned off.
func (c *serveCmd) services(rnic *iwarp.RNIC) (all []serve.Service) {
	if c.Perf {
		r := perf.NewResponder(rnic, int64(c.Memory)/2)
		all = append(all, serve.Service{Name: "perf", Wants: "those of iwarp perf", Knows: r.Knows, Serve: r.Serve})
	}
	if c.Cat {
		e := echo{rnic, c.Idle}
		all = append(all, serve.Service{Name: "cat", Wants: "those of rsockets", Knows: e.knows, Serve: e.serve})
	}
	if c.Rping {
		s := rping.NewServer(rnic, rping.Config{Idle: c.Idle})
		all = append(all, serve.Service{Name: "rping", Wants: "none", Knows: s.Knows, Serve: s.Serve})
	}
	return all
}
