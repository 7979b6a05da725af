package main

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
)

// studyCmd shows what placement ahead of order is worth.
type studyCmd struct {
	Loss        float64       `default:"1" placeholder:"PERCENT" help:"Share of packets that are lost (default: ${default})."`
	Reorder     float64       `default:"2" placeholder:"PERCENT" help:"Share of packets that come late (default: ${default})."`
	Delay       time.Duration `default:"500us" help:"One-way delay. Late packets take up to five times as long."`
	Connections int           `short:"c" default:"1" placeholder:"N" help:"Connections at the same time (default: ${default})."`
	Bytes       string        `placeholder:"N" help:"Bytes that each connection sends, such as 64K or 4M (default: 4M; with many connections less, to send 64M in all, but at least 32K)."`
	MTU         int           `default:"1500" placeholder:"N" help:"Largest packet, in bytes (default: ${default})."`
	Pattern     string        `name:"run" placeholder:"REGEXP" help:"Run the rows whose name matches, such as '^aligned, markers$$' or QPs."`
	Growth      bool          `help:"Run other rows instead: how memory grows with the receive window and the size of FPDUs."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of the random decisions (default: ${default})."`
	JSON        bool          `name:"json" help:"Print JSON: docs/study-json.md."`
}

// Help describes what is printed.
func (studyCmd) Help() string {
	return "Runs a user-space TCP over a simulated path that loses and reorders packets. FPDUs are placed as soon as their segments arrive " +
		"(RFC 5044, section 6). Rows differ in markers, and in whether each FPDU fits in one segment (aligned). \"in order\" " +
		"receives as an ordinary TCP does. Rows with a window limit the receive buffer. The last rows run Queue Pairs and verify their RDMA Writes; the others run MPA only.\n\n" +
		"\"ahead\" is the share of bytes that were placed before earlier data had arrived. The times are how long those FPDUs, once complete, " +
		"would otherwise have waited. \"MPA holds\" is the peak of MPA's reassembly memory, for all connections; \"TCP holds\" " +
		"is TCP's out-of-order data at that moment. \"reckoned\" is the formula of draft-culley-iwarp-mpa-03, " +
		"section 13.1.2, with constants of 1: aligned EMSS, not aligned EMSS * (connections + 1), in order bandwidth * round trip.\n\n" +
		"JSON: one object: docs/study-json.md."
}

// What connections send by default, in bytes: each, all together, and each of many.
const (
	studyEach, studyAll = 4 << 20, 64 << 20
	studyLeast          = 32 << 10
)

// bytesEach returns what each connection sends.
func (c *studyCmd) bytesEach() (int, error) {
	if c.Bytes == "" {
		return max(studyLeast, min(studyEach, studyAll/max(c.Connections, 1))), nil
	}
	n, err := wording.ParseBytes(c.Bytes)
	if err != nil || n < 1 || n > oooexperiment.MaxBytes {
		return 0, usage("study: --bytes: %.40q is not a size from 1 to %dM, such as 64K",
			c.Bytes, oooexperiment.MaxBytes>>20)
	}
	return int(n), nil
}

// config returns what each way is run with.
func (c *studyCmd) config() (cfg oooexperiment.Config, err error) {
	n, err := c.bytesEach()
	if err != nil {
		return cfg, err
	}
	cfg = oooexperiment.Config{
		Connections: c.Connections, Bytes: n, Loss: c.Loss / 100, Reorder: c.Reorder / 100,
		Delay: c.Delay, MTU: c.MTU, Seed: c.Seed,
	}
	if err := cfg.Check(); err != nil {
		return cfg, usage("study: %w", err)
	}
	return cfg, nil
}

// ways returns those that are picked.
func (c *studyCmd) ways() (picked []oooexperiment.Way, err error) {
	match, err := regexp.Compile(c.Pattern)
	if err != nil {
		return nil, usage("study: --run: %w: want a regular expression, such as ^aligned", err)
	}
	var names []string
	rows := oooexperiment.Ways
	if c.Growth {
		rows = oooexperiment.Growth
	}
	for _, w := range rows {
		if names = append(names, strconv.Quote(w.Name)); match.MatchString(w.Name) {
			picked = append(picked, w)
		}
	}
	if len(picked) == 0 {
		return nil, usage("study: --run: no row matches %.40q: want part of a name, such as %s or %s",
			c.Pattern, names[0], names[len(names)-1])
	}
	return picked, nil
}

// Run runs what is picked, one way after the other.
func (c *studyCmd) Run(ctx context.Context, std streams) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	ways, err := c.ways()
	if err != nil {
		return err
	}
	progress, began := newProgressLine(std.err), time.Now()
	r, err := oooexperiment.RunAll(ctx, cfg, ways, progress.text)
	progress.clear()
	if err != nil && !r.Interrupted {
		return err
	}
	r.Stamp = report.StampOf(versionName(built()), began)
	if c.JSON {
		return join(r.Report().WriteJSON(std.out), err)
	}
	return join(r.Report().WriteText(folded(std.out), false), err)
}
