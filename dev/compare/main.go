// Command compare measures iWARP beside plain TCP, iperf3, UCX and libfabric, in turns in
// one run, and writes the figures, tables and charts of docs/performance.md and of docs/performance. All run over
// loopback TCP on one host, each message between two processes where latency is measured.
//
//	go -C dev run ./compare
//	go -C dev run ./compare --render       # tables and charts once more, from the JSON file
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

type cli struct {
	Docs    string        `default:"docs" placeholder:"DIR" help:"Where performance.md and the directory performance are (default: ${default})."`
	Rounds  int           `default:"7" placeholder:"N" help:"How often each tool has its turn (default: ${default})."`
	Limit   time.Duration `default:"10s" placeholder:"TIME" help:"How long another tool may take for a turn (default: ${default})."`
	CC      []string      `name:"cc" default:"bbr,reno" placeholder:"NAME" help:"Congestion controls of the runs of iwarp perf (default: ${default}). The comparison of tools has the first one."`
	Install bool          `default:"true" negatable:"" help:"Install tools that are missing, as root on Debian."`
	Tools   bool          `default:"true" negatable:"" help:"Compare tools. Without, what the JSON file has of them stays."`
	Perf    bool          `default:"true" negatable:"" help:"Run iwarp perf. Without, what the JSON file has of it stays."`
	Goals   bool          `default:"true" negatable:"" help:"Measure what iWARP is to reach beside plain TCP. Without, what the JSON file has of it stays."`
	Floor   bool          `default:"true" negatable:"" help:"Measure what the machine allows at best, beside the goals. Without, what the JSON file has of it stays."`
	Growth  bool          `default:"true" negatable:"" help:"Measure how cost grows with connections and round-trip time. Without, what the JSON file has of it stays."`
	Short   bool          `default:"true" negatable:"" help:"Measure short connections. Without, what the JSON file has of them stays."`
	Study   bool          `default:"true" negatable:"" help:"Run iwarp study. Without, what the JSON file has of it stays."`
	Memory  bool          `default:"true" negatable:"" help:"Run iwarp study --growth. Without, what the JSON file has of it stays."`
	Lower   bool          `default:"true" negatable:"" help:"Measure idle connections over a TCP in user space and over SCTP. Without, what the JSON file has of them stays."`
	Library bool          `default:"true" negatable:"" help:"Measure programs of perftest on the library of iwarp run. Without, what the JSON file has of them stays."`
	Siw     bool          `help:"Measure beside Linux's siw too, in the guest of interop (QEMU)."`
	Loss    bool          `help:"Measure over links that lose packets too, in the guest of interop (QEMU)."`
	Render  bool          `help:"Measure nothing: write tables and charts from the JSON file."`

	Responder bool `hidden:"" help:"Be the other process."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Description("Measure iWARP beside other tools, and write docs/performance.md's figures. Paths are relative to the top of the repository."))
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
	if err := checkout.Enter(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	rec, err := readRecord(c.file())
	if err != nil {
		return err
	}
	if c.Render && len(rec.Measured) == 0 {
		return fmt.Errorf("--render: %s has no figures", c.file())
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
	return c.updatePages(rec)
}

// check refuses what would come to nothing, before anything is measured.
func (c *cli) check() error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds: %d would leave nothing of the figures: want 1 or more", c.Rounds)
	}
	for page := range c.pages(new(record)) {
		if _, err := os.Stat(page); err != nil {
			return fmt.Errorf("--docs: the tables go there: %w", err)
		}
	}
	return nil
}

// pages are the tables of each page.
func (c *cli) pages(rec *record) map[string]map[string]string {
	return map[string]map[string]string{
		filepath.Join(c.Docs, "performance.md"):           briefTables(rec),
		filepath.Join(c.Docs, "performance", "tables.md"): tables(rec),
	}
}

// file is where the figures are kept.
func (c *cli) file() string { return filepath.Join(c.Docs, "performance", "compare.json") }

// A part is a part of the JSON file that is measured by itself.
type part struct {
	name    string // in record.Measured
	wanted  bool
	measure func(context.Context, *own, *record) error
}

// alone is measure of a part that needs no other process.
func alone(measure func(context.Context, *record) error) func(context.Context, *own, *record) error {
	return func(ctx context.Context, _ *own, rec *record) error { return measure(ctx, rec) }
}

func (c *cli) parts() []part {
	return []part{
		{"tools", c.Tools, c.compare},
		{"perf", c.Perf, c.runPerf},
		{"goals", c.Goals, c.measureGoals},
		{"floors", c.Floor, c.measureFloors},
		{"growth", c.Growth, alone(c.measureGrowth)},
		{"short connections", c.Short, alone(c.measureShort)},
		{"study", c.Study, alone(c.measureStudy)},
		{"memory", c.Memory, alone(c.measureMemory)},
		{"lower layers", c.Lower, alone(c.measureLower)},
		{"library", c.Library, c.measureLibrary},
		{"siw", c.Siw, alone(c.measureSiw)},
		{"loss", c.Loss, alone(c.measureLoss)},
	}
}

// measure replaces the figures by new ones, and says of each part when and where that was.
func (c *cli) measure(ctx context.Context, rec *record) error {
	own, err := newOwn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = own.responder.Stop() }()
	for _, p := range c.parts() {
		if !p.wanted {
			continue
		}
		measured, err := now(ctx)
		if err != nil {
			return err
		}
		rec.setAside(p.name, measured.Machine)
		if err := p.measure(ctx, own, rec); err != nil {
			return err
		}
		rec.dated(p.name, measured)
	}
	return nil
}
