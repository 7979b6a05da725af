package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goiwarp/iwarp/perf"
)

// A chartColumn is one of the chart's.
type chartColumn struct {
	group, of, head string // what it is about, of whom, and what it has
	gap, width      int    // columns of the screen: in front of it, and its own
	left            bool   // its texts stand on the left
	tcp             bool   // it is about plain TCP
	late            bool   // it is known when latency is
	spare           int    // on a narrow screen those with the greatest go first; 0: it stays
	text            func(r perf.Result) string
	style           func(r perf.Result) style            // nil: usual
	draw            func(s screen, r perf.Result) string // in place of both
}

// padded is a text with the room that the column has.
func (c chartColumn) padded(text string) string {
	room := strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(text)))
	if c.left {
		return strings.Repeat(" ", c.gap) + text + room
	}
	return strings.Repeat(" ", c.gap) + room + text
}

// indent is how far the head is from the column's edge.
func (c chartColumn) indent() int {
	if c.left {
		return 0
	}
	return max(0, c.width-utf8.RuneCountInString(c.head))
}

// row has the cells of a row that are known at once, or those that are late.
func (s screen) row(columns []chartColumn, r perf.Result, late bool) string {
	var line strings.Builder
	for _, c := range columns {
		if c.late == late {
			line.WriteString(c.painted(s, r))
		}
	}
	return line.String()
}

// painted is a row's cell.
func (c chartColumn) painted(s screen, r perf.Result) string {
	if c.draw != nil {
		return strings.Repeat(" ", c.gap) + c.draw(s, r)
	}
	as := usual
	if c.style != nil {
		as = c.style(r)
	}
	return s.paint(as, c.padded(c.text(r)))
}

// pad is a line with blanks up to a column of the screen, one at least.
func pad(line string, at int) string {
	if line == "" {
		return strings.Repeat(" ", at)
	}
	return line + strings.Repeat(" ", max(1, at-utf8.RuneCountInString(line)))
}

// fitting leaves out columns until the others fit.
func fitting(columns []chartColumn, width int) []chartColumn {
	for {
		all, widest := 0, 0
		for i, c := range columns {
			all += c.gap + c.width
			if c.spare > columns[widest].spare {
				widest = i
			}
		}
		if all <= width || columns[widest].spare == 0 {
			return columns
		}
		columns = slices.Delete(columns, widest, widest+1)
	}
}

// What a narrow screen can do without, the last one first.
const (
	spareOurs99 = iota + 1
	spareTCP99
	spareAhead
	spareCPU
	spareBar
)

const barWidth = 13

// chartColumns are all columns, whether there is room for them or not.
func chartColumns(ops []opName, sizes []int, tcp, unordered bool) []chartColumn {
	columns := slices.Concat(rowColumns(ops, sizes), throughputColumns(unordered), latencyChart(), cpuColumns())
	return slices.DeleteFunc(columns, func(c chartColumn) bool { return c.tcp && !tcp })
}

func rowColumns(ops []opName, sizes []int) []chartColumn {
	op, size := len("Write"), len("64 KiB")
	for _, name := range ops {
		op = max(op, len(name))
	}
	for _, n := range sizes {
		size = max(size, len(sizeText(n)))
	}
	return []chartColumn{
		{width: op, left: true, text: func(r perf.Result) string { return r.Op.String() }},
		{gap: 1, width: size, head: "size", text: func(r perf.Result) string { return sizeText(r.Size) }},
	}
}

func throughputColumns(unordered bool) []chartColumn {
	const group = "throughput"
	columns := []chartColumn{
		{group: group, head: "█ iwarp │ TCP", gap: 1, width: barWidth, tcp: true, spare: spareBar, draw: drawBar},
		{group: group, head: "iwarp", gap: 2, width: 5,
			text: func(r perf.Result) string { return figure(throughputOf(r).ours) }},
		{group: group, head: "TCP", gap: 1, width: 5, tcp: true,
			text: func(r perf.Result) string { return figure(throughputOf(r).tcp) }},
		{group: group, gap: 1, width: 4, left: true, text: func(r perf.Result) string { return throughputOf(r).unit }},
		ratioColumn(group, "ratio_bw", true),
	}
	if unordered {
		columns = append(columns, chartColumn{group: group, head: "ahead", gap: 1, width: 7, spare: spareAhead,
			text: aheadText})
	}
	return columns
}

func latencyChart() []chartColumn {
	const group = "latency in µs"
	column := func(of, head string, gap, spare int, tcp bool, value func(*perf.Figures) float64) chartColumn {
		return chartColumn{group: group, of: of, head: head, gap: gap, width: 5, late: true, spare: spare, tcp: tcp,
			text: func(r perf.Result) string {
				f := &r.Figures
				if tcp {
					f = r.TCP
				}
				return microseconds(value(f))
			}}
	}
	half := func(f *perf.Figures) float64 { return f.Typical }
	late := func(f *perf.Figures) float64 { return f.Latencies.P99 }
	return []chartColumn{
		column("iwarp", "p50", 2, 0, false, half),
		column("iwarp", "p99", 1, spareOurs99, false, late),
		column("TCP", "p50", 2, 0, true, half),
		column("TCP", "p99", 1, spareTCP99, true, late),
		lateColumn(ratioColumn(group, "ratio_lat", false)),
	}
}

func cpuColumns() []chartColumn {
	c := lateColumn(ratioColumn("CPU", "ratio_cpu", false))
	c.gap, c.spare = 2, spareCPU
	return []chartColumn{c}
}

func lateColumn(c chartColumn) chartColumn {
	c.late = true
	return c
}

func ratioColumn(group, key string, moreIsBetter bool) chartColumn {
	return chartColumn{group: group, head: "ratio", gap: 1, width: 6, tcp: true,
		text:  func(r perf.Result) string { return ratioText(r.Ratio(key), firm(r, key)) },
		style: func(r perf.Result) style { return ratioStyle(r, key, moreIsBetter) },
	}
}

// firm reports whether a ratio says something: another run would find it, and it is of more than round trips.
func firm(r perf.Result, key string) bool {
	return r.Repeats(key) && (key != "ratio_bw" || !r.ShortSlices)
}

// about is how far a ratio may be from 1 and be called the same.
const about = 0.05

func ratioStyle(r perf.Result, key string, moreIsBetter bool) style {
	ratio := r.Ratio(key)
	switch {
	case ratio == 0 || !firm(r, key):
		return quiet
	case ratio > 1-about && ratio < 1+about:
		return usual
	case ratio > 1 == moreIsBetter:
		return good
	}
	return bad
}

// drawBar draws the throughput over iWARP as a bar, and plain TCP's as a mark in it or behind it. The greater one has
// all the room.
func drawBar(s screen, r perf.Result) string {
	x := throughputOf(r)
	most := max(x.ours, x.tcp)
	if most == 0 {
		return strings.Repeat(" ", barWidth)
	}
	const parts = 8
	length := int(x.ours / most * barWidth * parts)
	at := min(int(x.tcp/most*barWidth), barWidth-1)
	cells := make([]rune, barWidth)
	for i := range cells {
		cells[i] = []rune(" ▏▎▍▌▋▊▉█")[min(max(length-i*parts, 0), parts)]
	}
	return s.paint(ours, string(cells[:at])) + s.paint(usual, "│") + s.paint(ours, string(cells[at+1:]))
}
