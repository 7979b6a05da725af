package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/perf"
)

// A perfColumn is one of the table's.
type perfColumn struct {
	group, head string
	width       int
	text        func(perf.Result) string
	tcp         bool // it is about plain TCP
	more        bool // only with --all-columns
}

// perfGrid is how the columns are printed: the first one's texts on the left, the figures on the right.
func perfGrid(columns []perfColumn) (g report.Grid) {
	for i, c := range columns {
		g = append(g, report.Column{Group: c.group, Head: c.head, Width: c.width, Left: i == 0})
	}
	return g
}

// perfColumns returns the table's columns.
func perfColumns(ops []opName, tcp, all, gbits, ahead bool) []perfColumn {
	columns := slices.Concat(
		opColumn(ops), bandwidthColumns(gbits), aheadColumns(ahead), latencyColumns(), costColumns(), tcpColumns(gbits),
		ratioColumns(), pairColumns(),
	)
	return slices.DeleteFunc(columns, func(c perfColumn) bool { return c.tcp && !tcp || c.more && !all })
}

// number returns a column's text for a figure with so many decimals, or a dash where the
// system does not tell it.
func number(decimals int, of func(perf.Result) float64) func(perf.Result) string {
	return func(r perf.Result) string {
		if x := of(r); x != 0 {
			return fmt.Sprintf("%.*f", decimals, x)
		}
		return "-"
	}
}

// Marks of figures, which explain says more about.
const (
	scarceMark = "*" // too few slices were undisturbed
	shortMark  = "+" // slices of bandwidth were short beside the round trip
)

// marks are those of a row's figures of one quantity.
func marks(r perf.Result, q perf.Quantity) string {
	return wording.If(r.Scarce(q), scarceMark, "") + wording.If(q == perf.Bandwidth && r.ShortSlices, shortMark, "")
}

// marked is number for a figure of that quantity, with its marks. They take the place of decimals where the column has
// no other for them.
func marked(q perf.Quantity, width, decimals int, of func(perf.Result) float64) func(perf.Result) string {
	return func(r perf.Result) string {
		mark := marks(r, q)
		text := number(decimals, of)(r)
		if mark == "" || text == "-" {
			return text
		}
		for d := decimals; d > 0 && len(text)+len(mark) > width; {
			d--
			text = number(d, of)(r)
		}
		return text + mark
	}
}

// bandwidth returns a figure in MiB/s as the table has it.
func bandwidth(gbits bool, mebibytes float64) float64 {
	if gbits {
		return mebibytes * (8 << 20) / 1e9
	}
	return mebibytes
}

func bandwidthUnit(gbits bool) string {
	if gbits {
		return "[Gb/sec]"
	}
	return "[MiB/sec]"
}

// opColumn is as wide as the longest name that is asked for.
func opColumn(ops []opName) []perfColumn {
	width := len("Write")
	for _, op := range ops {
		width = max(width, len(op))
	}
	return []perfColumn{{"", "op", width, func(r perf.Result) string { return r.Op.String() }, false, false}}
}

func bandwidthColumns(gbits bool) []perfColumn {
	const group = "bandwidth"
	unit := bandwidthUnit(gbits)
	return []perfColumn{
		{"", "#bytes", 8, number(0, func(r perf.Result) float64 { return float64(r.Size) }), false, false},
		{"", "depth", 6, number(0, func(r perf.Result) float64 { return float64(r.TXDepth) }), false, true},
		{"", "rx", 6, number(0, func(r perf.Result) float64 { return float64(r.RXDepth) }), false, true},
		{"", "EMSS", 6, number(0, func(r perf.Result) float64 { return float64(r.EMSS) }), false, true},
		{"", "MULPDU", 6, number(0, func(r perf.Result) float64 { return float64(r.MULPDU) }), false, true},
		{group, "#iterations", 12, number(0, func(r perf.Result) float64 { return float64(r.Iterations) }), false,
			true},
		{group, "peak" + unit, 14, marked(perf.Bandwidth, 14, 2,
			func(r perf.Result) float64 { return bandwidth(gbits, r.BWPeak) }), false, true},
		{group, "avg" + unit, 13, marked(perf.Bandwidth, 13, 2,
			func(r perf.Result) float64 { return bandwidth(gbits, r.BWAverage) }), false, false},
		{group, "[Mpps]", 9, marked(perf.Bandwidth, 9, 5,
			func(r perf.Result) float64 { return r.MsgRate }), false, false},
	}
}

// aheadColumns are there where segments arrive in any order.
func aheadColumns(unordered bool) []perfColumn {
	if !unordered {
		return nil
	}
	return []perfColumn{{"bandwidth", "ahead", 7, aheadText, false, false}}
}

func latencyColumns() []perfColumn {
	const group = "latency [usec]"
	return []perfColumn{
		{group, "#iterations", 12, number(0, func(r perf.Result) float64 { return float64(r.LatencyIterations) }),
			false, true},
		{group, "t_min", 9, marked(perf.Latency, 9, 2, func(r perf.Result) float64 { return r.Min }), false, true},
		{group, "t_max", 10, marked(perf.Latency, 10, 2, func(r perf.Result) float64 { return r.Max }), false, true},
		{group, "t_typical", 10, marked(perf.Latency, 10, 2,
			func(r perf.Result) float64 { return r.Typical }), false, false},
		{group, "t_avg", 9, marked(perf.Latency, 9, 2, func(r perf.Result) float64 { return r.Average }), false, true},
		{group, "t_stdev", 9, marked(perf.Latency, 9, 2, func(r perf.Result) float64 { return r.Stdev }), false, true},
		{group, "99%", 9, marked(perf.Latency, 9, 2,
			func(r perf.Result) float64 { return r.Latencies.P99 }), false, false},
		{group, "99.9%", 10, marked(perf.Latency, 10, 2, func(r perf.Result) float64 { return r.P999 }), false, true},
		{group, "CPU[us]", 9, number(2, func(r perf.Result) float64 { return r.CPULat }), false, true},
		{group, "switches", 9, number(2, func(r perf.Result) float64 { return r.SwitchesLat }), false, false},
		{group, "calls", 7, number(2, func(r perf.Result) float64 { return r.CallsLat }), false, true},
	}
}

func costColumns() []perfColumn {
	const group = "cost of a message"
	return []perfColumn{
		{group, "CPU[us]", 9, number(2, func(r perf.Result) float64 { return r.CPU }), false, false},
		{group, "[ns/byte]", 11, number(3, func(r perf.Result) float64 { return r.CPUByte }), false, true},
		{group, "switches", 9, number(2, func(r perf.Result) float64 { return r.Switches }), false, false},
		{group, "calls", 7, number(2, func(r perf.Result) float64 { return r.Calls }), false, false},
	}
}

func tcpColumns(gbits bool) []perfColumn {
	const group = "plain TCP"
	of := func(f func(*perf.Figures) float64) func(perf.Result) float64 {
		return func(r perf.Result) float64 { return f(r.TCP) }
	}
	unit := strings.Trim(bandwidthUnit(gbits), "[]")
	return []perfColumn{
		{group, "#iterations", 12, number(0, of(func(f *perf.Figures) float64 { return float64(f.Iterations) })), true,
			true},
		{group, unit, 9, marked(perf.Bandwidth, 9, 2,
			of(func(f *perf.Figures) float64 { return bandwidth(gbits, f.BWAverage) })), true, false},
		{group, "peak", 9, marked(perf.Bandwidth, 9, 2,
			of(func(f *perf.Figures) float64 { return bandwidth(gbits, f.BWPeak) })), true, true},
		{group, "[Mpps]", 9, marked(perf.Bandwidth, 9, 5,
			of(func(f *perf.Figures) float64 { return f.MsgRate })), true, true},
		{group, "#latencies", 11, number(0, of(func(f *perf.Figures) float64 { return float64(f.LatencyIterations) })),
			true, true},
		{group, "min", 8, marked(perf.Latency, 8, 2, of(func(f *perf.Figures) float64 { return f.Min })), true, true},
		{group, "max", 10, marked(perf.Latency, 10, 2, of(func(f *perf.Figures) float64 { return f.Max })), true, true},
		{group, "typ", 8, marked(perf.Latency, 8, 2,
			of(func(f *perf.Figures) float64 { return f.Typical })), true, false},
		{group, "avg", 8, marked(perf.Latency, 8, 2,
			of(func(f *perf.Figures) float64 { return f.Average })), true, true},
		{group, "stdev", 8, marked(perf.Latency, 8, 2,
			of(func(f *perf.Figures) float64 { return f.Stdev })), true, true},
		{group, "99%", 8, marked(perf.Latency, 8, 2,
			of(func(f *perf.Figures) float64 { return f.Latencies.P99 })), true, false},
		{group, "99.9%", 10, marked(perf.Latency, 10, 2,
			of(func(f *perf.Figures) float64 { return f.P999 })), true, true},
		{group, "CPU[us]", 9, number(2, of(func(f *perf.Figures) float64 { return f.CPU })), true, false},
		{group, "[ns/byte]", 11, number(3, of(func(f *perf.Figures) float64 { return f.CPUByte })), true, true},
		{group, "switches", 9, number(2, of(func(f *perf.Figures) float64 { return f.Switches })), true, true},
		{group, "calls", 7, number(2, of(func(f *perf.Figures) float64 { return f.Calls })), true, true},
		{group, "CPU lat", 9, number(2, of(func(f *perf.Figures) float64 { return f.CPULat })), true, true},
		{group, "sw. lat", 9, number(2, of(func(f *perf.Figures) float64 { return f.SwitchesLat })), true, true},
		{group, "calls lat", 10, number(2, of(func(f *perf.Figures) float64 { return f.CallsLat })), true, true},
	}
}

func ratioColumns() []perfColumn {
	const group = "ratio to plain TCP"
	column := func(head, key string, more bool) perfColumn {
		text := func(r perf.Result) string { return r.Text(key, "%.2f %.2f-%.2f") }
		return perfColumn{group, head, 17, text, true, more}
	}
	return []perfColumn{
		column("bw", "ratio_bw", false),
		column("lat", "ratio_lat", false),
		column("99%", "ratio_p99", true),
		column("cpu", "ratio_cpu", false),
		column("cpu lat", "ratio_cpu_lat", true),
	}
}

func pairColumns() []perfColumn {
	const group = "slices, dropped"
	column := func(head string, all, dropped func(perf.Result) int) perfColumn {
		return perfColumn{group, head, 9, func(r perf.Result) string {
			return fmt.Sprintf("%d, %d",
				all(r), dropped(r))
		}, false, true}
	}
	return []perfColumn{
		column("bw", func(r perf.Result) int { return r.BWPairs }, func(r perf.Result) int { return r.BWDropped }),
		column("lat", func(r perf.Result) int { return r.LatPairs }, func(r perf.Result) int { return r.LatDropped }),
		{"round trips", "[usec]", 9, number(1, func(r perf.Result) float64 { return r.RoundTrip }), false, true},
		{"round trips", "in slice", 8, number(1, func(r perf.Result) float64 { return r.SliceTrips }), false, true},
	}
}
