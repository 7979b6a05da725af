// Command compare measures iWARP beside plain TCP, iperf3, UCX and libfabric, in turns in
// one run, and writes the figures, tables and charts of docs/performance.md. All run over
// loopback TCP on one host, each message between two processes where latency is measured.
//
//	go run ./perf/compare                # from the top of the repository
//	go run ./perf/compare --render       # tables and charts once more, from the JSON file
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"
)

type cli struct {
	Docs    string        `default:"docs" placeholder:"DIR" help:"Where performance.md and the directory performance are (default: ${default})."`
	Rounds  int           `default:"7" placeholder:"N" help:"How often each tool has its turn (default: ${default})."`
	Limit   time.Duration `default:"5s" placeholder:"TIME" help:"How long another tool may take for a turn (default: ${default})."`
	CC      []string      `name:"cc" default:"bbr,reno" placeholder:"NAME" help:"Congestion controls of the runs of iwarp perf (default: ${default}). The comparison of tools has the first one."`
	Install bool          `default:"true" negatable:"" help:"Install tools that are missing, as root on Debian."`
	Tools   bool          `default:"true" negatable:"" help:"Compare tools. Without, what the JSON file has of them stays."`
	Perf    bool          `default:"true" negatable:"" help:"Run iwarp perf. Without, what the JSON file has of it stays."`
	Growth  bool          `default:"true" negatable:"" help:"Measure how cost grows with connections and round-trip time. Without, what the JSON file has of it stays."`
	Short   bool          `default:"true" negatable:"" help:"Measure short connections. Without, what the JSON file has of them stays."`
	Study   bool          `default:"true" negatable:"" help:"Run iwarp study. Without, what the JSON file has of it stays."`
	Memory  bool          `default:"true" negatable:"" help:"Run iwarp study --growth. Without, what the JSON file has of it stays."`
	Lower   bool          `default:"true" negatable:"" help:"Measure idle connections over a TCP in user space and over SCTP. Without, what the JSON file has of them stays."`
	Siw     bool          `help:"Measure beside Linux's siw too, in the guest of interop (QEMU)."`
	Render  bool          `help:"Measure nothing: write tables and charts from the JSON file."`

	Responder bool `hidden:"" help:"Be the other process."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Description("Measure iWARP beside other tools, and write docs/performance.md's figures."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context) error {
	if c.Responder {
		return respond(ctx)
	}
	rec, err := readRecord(c.file())
	if err != nil {
		return err
	}
	if !c.Render {
		if err := c.measure(ctx, rec); err != nil {
			return err
		}
		if err := rec.write(c.file()); err != nil {
			return err
		}
	}
	if err := drawCharts(rec, filepath.Join(c.Docs, "performance")); err != nil {
		return err
	}
	if err := drawStudy(rec, filepath.Join(c.Docs, "performance")); err != nil {
		return err
	}
	return updateTables(rec, filepath.Join(c.Docs, "performance.md"))
}

// file is where the figures are kept.
func (c *cli) file() string { return filepath.Join(c.Docs, "performance", "compare.json") }

// measure replaces the figures by new ones.
func (c *cli) measure(ctx context.Context, rec *record) error {
	if c.Tools || c.Perf || c.Growth || c.Short { // the rest depends on the machine less, and its sections say when they were measured
		rec.Machine = thisMachine()
	}
	own, err := newOwn(ctx)
	if err != nil {
		return err
	}
	defer own.responder.Stop()
	if c.Tools {
		if err := c.compare(ctx, own, rec); err != nil {
			return err
		}
	}
	if c.Perf {
		if err := c.runPerf(ctx, own, rec); err != nil {
			return err
		}
	}
	if c.Growth {
		if err := c.measureGrowth(ctx, rec); err != nil {
			return err
		}
	}
	if c.Short {
		if err := c.measureShort(ctx, rec); err != nil {
			return err
		}
	}
	if c.Study {
		if err := c.measureStudy(ctx, rec); err != nil {
			return err
		}
	}
	if c.Memory {
		if err := c.measureMemory(ctx, rec); err != nil {
			return err
		}
	}
	if c.Lower {
		if err := c.measureLower(ctx, rec); err != nil {
			return err
		}
	}
	if c.Siw {
		return c.measureSiw(ctx, rec)
	}
	return nil
}
