package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/internal/wording"
)

// studyCmd shows what placement ahead of order is worth.
type studyCmd struct {
	Loss        float64       `default:"1" placeholder:"PERCENT" help:"Share of packets that are lost (default: ${default})."`
	Reorder     float64       `default:"2" placeholder:"PERCENT" help:"Share of packets that come late (default: ${default})."`
	Delay       time.Duration `default:"500us" help:"One-way delay. Late packets take up to four times as much in addition."`
	Connections int           `short:"c" default:"1" placeholder:"N" help:"Connections at the same time (default: ${default})."`
	Bytes       string        `placeholder:"N" help:"What each connection sends; K and M are 2^10 and 2^20 (default: 4M, and less where that would be more than 64M in all, but 32K at least)."`
	MTU         int           `default:"1500" placeholder:"N" help:"Largest packet, in bytes (default: ${default})."`
	Pattern     string        `name:"run" placeholder:"REGEXP" help:"Run the rows whose name matches, such as '^aligned, markers$$' or QPs."`
	Growth      bool          `help:"Run other rows, which show with what memory grows: receive windows, and sizes of FPDUs."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of the random decisions (default: ${default})."`
	JSON        bool          `name:"json" help:"Print JSON: docs/study-json.md."`
}

// Help describes what is printed.
func (studyCmd) Help() string {
	return "Runs connections of a TCP in user space over a path in memory that loses and reorders packets. Their FPDUs are placed as their " +
		"segments come (RFC 5044, section 6), with and without markers, from senders that keep an FPDU in one segment and from others; \"in order\" " +
		"receives as every TCP does. Rows with a window have receive buffers of that size. The last rows have Queue Pairs at the ends, whose RDMA Writes are verified; the other rows have MPA alone at the ends.\n\n" +
		"\"ahead\" is the share of bytes that was placed before all in front of them had come. The times are those of the FPDUs that were " +
		"whole before that, from the arrival of their last byte. \"MPA holds\" is the most that it held for reassembly of all connections at one moment, \"TCP holds\" " +
		"what had come ahead of order then, which it keeps in any case. \"reckoned\" is what the formulae of draft-culley-iwarp-mpa-03, " +
		"section 13.1.2, give with all constants taken as 1: aligned EMSS, not aligned EMSS * (connections + 1), in order bandwidth * round trip.\n\n" +
		"JSON: one object: docs/study-json.md."
}

// What connections send by default, in bytes: each, all together, and each of many.
const (
	studyEach, studyAll = 4 << 20, 64 << 20
	studyLeast          = 32 << 10
)

// bytes returns what each connection sends.
func (c *studyCmd) octets() (int, error) {
	if c.Bytes == "" {
		return max(studyLeast, min(studyEach, studyAll/max(c.Connections, 1))), nil
	}
	n, err := wording.ParseBytes(c.Bytes)
	if err != nil || n < 1 || n > oooexperiment.MaxBytes {
		return 0, usage("study: --bytes: %.40q is no number of bytes from 1 to %dM",
			c.Bytes, oooexperiment.MaxBytes>>20)
	}
	return int(n), nil
}

// config returns what each way is run with.
func (c *studyCmd) config() (cfg oooexperiment.Config, err error) {
	octets, err := c.octets()
	if err != nil {
		return cfg, err
	}
	cfg = oooexperiment.Config{
		Connections: c.Connections, Bytes: octets, Loss: c.Loss / 100, Reorder: c.Reorder / 100,
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
		return nil, usage("study: --run: %w", err)
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
		return nil, usage("study: --run: no name of a row matches %q; there are %s",
			c.Pattern, strings.Join(names, ", "))
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
	progress := newProgressLine(std.err)
	r, err := oooexperiment.RunAll(ctx, cfg, ways, progress.text)
	progress.clear()
	if err != nil && !r.Interrupted {
		return err
	}
	if c.JSON {
		return join(r.Report().WriteJSON(std.out), err)
	}
	return join(r.Report().WriteText(std.out, false), err)
}
