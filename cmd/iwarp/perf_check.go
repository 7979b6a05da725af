package main

import (
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/perf"
)

// checkUnused refuses options that would do nothing beside others.
func (c *perfCmd) checkUnused() error {
	switch {
	case c.Listen != "" && len(c.ofInitiator()) > 0:
		return usage("perf: --listen: the client chooses what to measure: give %s to the client",
			strings.Join(c.ofInitiator(), ", "))
	case c.Processes != 0 && (c.Listen != "" || c.Connect != ""):
		return usage("perf: --processes: with --listen and --connect each end has a process of its own")
	case c.Iters > 0 && c.Duration > 0:
		return usage("perf: --iters and --duration: use one of them")
	case c.given() != "" && c.Listen == "" && c.Connect == "":
		return usage("perf: %s: needs two processes: use --listen or --connect", c.given())
	case c.All && len(c.Size) > 0:
		return usage("perf: --all: all sizes are measured: leave --size out")
	}
	return c.checkAddresses()
}

// checkAddresses refuses those that cannot be ones.
func (c *perfCmd) checkAddresses() error {
	switch {
	case c.Listen != "":
		return wantListen("perf: --listen", c.Listen.withPort())
	case c.Connect != "":
		return wantPeer("perf: --connect", c.Connect.withPort())
	}
	return nil
}

// ofInitiator are the flags that were given and do nothing at the end that listens, which serves whatever an initiator
// asks for.
func (c *perfCmd) ofInitiator() (flags []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--op", len(c.Op) > 0}, {"--size", len(c.Size) > 0}, {"--all", c.All}, {"--depth", c.Depth > 0},
		{"--rx-depth", c.RXDepth > 0},
		{"--iters", c.Iters > 0}, {"--duration", c.Duration > 0}, {"--qps", c.QPs > 1},
		{"--bidirectional", c.Bidirectional},
		{"--inline", c.Inline != 0}, {"--post-list", c.PostList > 0}, {"--cq-mod", c.CQMod > 0}, {"--poll", c.Poll},
		{"--cc", c.Congestion != ""}, {"--markers", c.Markers}, {"--crc", c.CRC == "off"},
		{"--dialect", c.Dialect != nil},
		{"--mpa-rev", c.MPARev != nil}, {"--kind", c.Kind != nil}, {"--peer", c.Peer != nil},
		{"--reorder", c.Reorder != 0},
		{"--corrupt", c.Corrupt}, {"--keep-disturbed", c.KeepDisturbed}, {"--tcp", c.TCP == "off"}, {"--json", c.JSON},
		{"--table", c.Table}, {"--all-columns", c.AllColumns}, {"--report-gbits", c.ReportGbits},
	} {
		if f.given {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// checkLoad refuses options that what is to be measured leaves nothing to do for.
func (c *perfCmd) checkLoad(o perf.Options) error {
	depth := o.Depth
	if depth == 0 {
		depth = perf.DefaultDepth
	}
	switch {
	case o.PostList > depth:
		return usage("perf: --post-list, --depth: only %d messages are under way, so %d cannot be posted together", depth, o.PostList)
	case o.CQMod > depth:
		return usage("perf: --cq-mod, --depth: only %d messages are under way, so a completion cannot wait for %d", depth, o.CQMod)
	case o.Inline > 0 && !inlines(o):
		return usage("perf: --inline: has no effect: no Send, Write or Write-Imm has %d bytes or fewer", o.Inline)
	}
	return nil
}

// inlines reports whether any message is copied with its work request.
func inlines(o perf.Options) bool {
	sends := func(op perf.Op) bool { return !op.Fetches() }
	sizes := o.Sizes
	if len(sizes) == 0 {
		sizes = perf.DefaultSizes()
	}
	return (len(o.Ops) == 0 || slices.ContainsFunc(o.Ops, sends)) && slices.Min(sizes) <= o.Inline
}
