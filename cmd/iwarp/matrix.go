package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
)

// matrixCmd runs the figures of the interoperability draft, and more.
type matrixCmd struct {
	Figure  []int         `enum:"2,3,4" placeholder:"N" help:"Run this figure only: 2, 3 or 4. May be repeated."`
	Pattern string        `name:"run" placeholder:"REGEXP" help:"Run the rows whose GROUP/NAME matches, such as '^dialects/rtr2007' (see --list for names)."`
	Timeout time.Duration `default:"${matrix_timeout}" help:"How long one row may take; one that takes longer counts as different."`

	List bool `help:"List the rows, and run none: GROUP/NAME with the requirements, the section, and what is demanded; with --json an object on a line for each."`

	Network networkName `enum:"${networks}" default:"tcp" placeholder:"NAME" help:"What the rows run over (${matrix_networks}): TCP with MPA, SCTP in UDP (RFC 5043), or a TCP in user space that is aware of MPA."`

	reportFlags
}

// Help describes the JSON object.
func (matrixCmd) Help() string {
	return "Runs every cell of figures 2, 3 and 4 of draft-carrier-rddp-rnic-interop-00 over loopback TCP. Then come every " +
		"dialect of MPA startup against every other, markers and CRC on and off, RTR indications, IRD and ORD, private " +
		"data, rejections, and frames that break rules. --network sctp runs the cells of RFC 6581, section 7, over SCTP in UDP: plain and enhanced ends, " +
		"RTR indications, IRD and ORD, private data, rejections, and messages that break rules. --network usertcp runs the cells of TCP over a TCP in user space. There is no sctp:kernel: " +
		"what passes between the two ends is compared, too, and to see that of the kernel's takes a socket of root's (docs/interop.md has what shows that SCTP). In a cell that comes up a Send, a Write and a Read are verified in " +
		"both directions. What both ends and what passes on the wire say is compared with what the documents demand.\n\n" +
		"JSON: {version, time, cells, as_demanded, ms, interrupted, figures: [{figure, title, cells: [ROW and initiator, initiator_markers, responder, " +
		"responder_markers, printed]}], wider: [ROW]}, where ROW is {group, name, requirements, section, demanded, got, ok, " +
		"differences, initiator_error, responder_error, wire, ms}. After an interrupt there are the rows that were over, and interrupted is true. With --list: {group, name, requirements, section, demanded} on a line for each row."
}

// Run runs what is picked, and prints it.
func (c *matrixCmd) Run(ctx context.Context, std streams) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if c.List {
		return c.list(std, cfg)
	}
	files, err := c.open("matrix", matrix.Title(string(c.Network)))
	if err != nil {
		return err
	}
	defer func() { err = files.finish(ctx, err) }()
	rows, _ := matrix.List(cfg) // Run returns the error
	line := &countLine{progressLine: newProgressLine(std.err), all: len(rows), began: time.Now()}
	cfg.Watch = line.one
	report, err := matrix.Run(ctx, cfg)
	line.clear()
	switch {
	case errors.Is(err, matrix.ErrNothingPicked):
		return c.nothingPicked()
	case report == nil:
		return err
	}
	report.Stamp = files.stamp()
	err = join(c.write(std, files, report.Report()), err)
	if wrong := report.Cells - report.AsDemanded; wrong > 0 && (err == nil || report.Interrupted) {
		return findings("matrix: cells that differ from what the documents demand: %d of %d", wrong, report.Cells)
	}
	return err
}

func (c *matrixCmd) nothingPicked() error {
	return usage("matrix: --run: no GROUP/NAME matches %q; --list prints them all", c.Pattern)
}

// list prints the rows that are picked.
func (c *matrixCmd) list(std streams, cfg matrix.Config) error {
	if c.JUnit != "" || c.Markdown != "" || c.HTML != "" {
		return usage("matrix: --list: no row is run: leave out --junit, --markdown and --html")
	}
	rows, err := matrix.List(cfg)
	if errors.Is(err, matrix.ErrNothingPicked) {
		return c.nothingPicked()
	}
	enc := json.NewEncoder(std.out)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if c.JSON {
			err = join(err, enc.Encode(r))
			continue
		}
		fmt.Fprintf(std.out, "%s/%s\n    %s  %s\n    %s\n", r.Group, r.Name, strings.Join(r.Requirements, " "), r.Section, r.Demanded)
	}
	return err
}

func (c *matrixCmd) config() (cfg matrix.Config, err error) {
	cfg = matrix.Config{Network: string(c.Network), Figures: c.Figure, Timeout: c.Timeout}
	if c.Pattern != "" {
		if cfg.Match, err = regexp.Compile(c.Pattern); err != nil {
			return cfg, usage("matrix: --run: %w: want a regular expression, such as ^rtr/; --list shows all rows", err)
		}
	}
	if !slices.Contains(matrix.Networks(), string(c.Network)) {
		return cfg, usage("matrix: --network: %s: what passes between the two ends is compared, too, and only a relay in UDP sees it: run --network sctp, whose ends have the same rules", c.Network)
	}
	if len(c.Figure) > 0 && c.Network == network.SCTP {
		return cfg, usage("matrix: --figure: the figures are about MPA")
	}
	return cfg, notNegative("matrix: --timeout", c.Timeout)
}
