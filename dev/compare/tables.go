package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/dev/internal/document"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// Tables stand in the document between these two lines, which name them.
const (
	tableBegin = "<!-- made by dev/compare: %s -->\n"
	tableEnd   = "<!-- end of %s -->\n"
)

// tables returns all that the record says, of each machine, by name.
func tables(rec *record) map[string]string {
	of := rec.everywhere
	return map[string]string{
		"missing": missingText(rec), "buffers": rec.Measured["growth"].text() + buffersText(rec),
		"tools": of("tools", toolsTable), "perf": of("perf", perfTable), "goals": goalsText(rec),
		"connections": of("growth", connectionsTable), "round trips": of("growth", roundTripTable),
		"short connections": of("short connections", shortTable), "siw": of("siw", siwTable),
		"loss":  of("loss", lossTable),
		"ahead": of("study", studyTable), "memory": of("memory", memoryTable),
		"lower layers":            of("lower layers", lowerTable),
		"programs on the library": of("library", libraryTable),
	}
}

// text stands in front of a table.
func (w when) text() string {
	changed, load := "", ""
	if w.Modified {
		changed = " (changed)"
	}
	if w.Load != "" {
		load = ", after a minute with a load of " + w.Load
	}
	return fmt.Sprintf("Measured on %s, at commit %s%s%s: %s.\n\n", w.Date, w.Commit, changed, load, w.Machine.Text())
}

// updatePages replaces what stands between the markers of each page.
func (c *cli) updatePages(rec *record) error {
	for file, tables := range c.pages(rec) {
		if err := updateTables(tables, file); err != nil {
			return err
		}
	}
	return nil
}

func updateTables(tables map[string]string, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc := string(text)
	for name, table := range tables {
		if doc, err = replaced(doc, name, table); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, []byte(doc), 0o644)
}

// replaced puts a table between its markers.
func replaced(doc, name, table string) (string, error) {
	doc, ok := document.Between(doc, fmt.Sprintf(tableBegin, name), fmt.Sprintf(tableEnd, name), table)
	if !ok {
		return "", fmt.Errorf("there is no place for the table %s", name)
	}
	return doc, nil
}

// toolsTable has a row for each work and tool.
func toolsTable(rec *record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Plain TCP, iwarp and iperf3 are with %s.\n\n", mediansOf(rec.Rounds), rec.CC)
	b.WriteString(report.MarkdownHeading("work", "tool", "median", "quartiles", "ratio to plain TCP", "quartiles"))
	for _, v := range rec.Values {
		b.WriteString(report.MarkdownRow(slices.Concat([]string{workOf(v.Work).title, v.toolText(rec.Rounds)},
			v.figureCells(), v.ratio().cells(v.Rounds))...))
	}
	return b.String()
}

// toolText names the tool, and how many rounds it has if some of its turns failed.
func (v value) toolText(rounds int) string {
	if v.Rounds >= rounds {
		return v.Tool
	}
	return fmt.Sprintf("%s (%d of %d rounds)", v.Tool, v.Rounds, rounds)
}

// whole prints no decimals.
func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

// short prints three digits, or all that are before the point.
func short(x float64) string {
	switch {
	case x >= 100:
		return whole(x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

func missingText(rec *record) string {
	all := slices.Concat(rec.Missing, lacking(works(), rec.Values))
	if len(all) == 0 {
		return "Nothing is missing.\n"
	}
	var b strings.Builder
	for _, m := range all {
		b.WriteString(missingLine(m))
	}
	return b.String()
}

// lacking tells of the works that programs of others, which have some of the figures, do not have.
func lacking(works []work, figures []value) (all []missing) {
	for _, p := range otherPrograms(0) {
		if !slices.ContainsFunc(figures, func(v value) bool { return v.Tool == p.label }) {
			continue
		}
		for _, w := range works {
			if _, _, ok := p.command(w, 0, ""); !ok {
				all = append(all, missing{Tool: p.label, Work: w.key, Reason: p.lacks(w)})
			}
		}
	}
	return all
}

func missingLine(m missing) string {
	what := "all"
	if m.Work != "" {
		what = workOf(m.Work).title
	}
	return fmt.Sprintf("- %s, %s: %s\n", m.Tool, what, m.Reason)
}

// perfTable has a row for each operation, size and congestion control.
func perfTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("op", "bytes", "congestion control", "bandwidth", "latency", "99 %",
		"CPU", "CPU us", "switches", "calls", "switches, latency"))
	for _, row := range perfRows(rec) {
		r := row.result
		ratio := func(key string) string { return ratioText(r, key) }
		b.WriteString(report.MarkdownRow(r.Op.String(), strconv.Itoa(r.Size), row.cc,
			ratio("ratio_bw"), ratio("ratio_lat"), lateText(r, ratio("ratio_p99")), ratio("ratio_cpu"),
			short(r.CPU), short(r.Switches), short(r.Calls), short(r.SwitchesLat)))
	}
	return b.String()
}

// ratioText has the quartiles of those, too, that another run would not repeat.
func ratioText(r perf.Result, key string) string {
	if q := r.Quartiles[key]; slices.Contains(r.Inconclusive, key) {
		return unrepeated + ": " + quartilesText(q[0], q[1])
	}
	return r.Text(key, "%.2f (%.2f - %.2f)")
}

// lateText is the text of a ratio of 99th percentiles, or a dash where slices were too short for one: records up to
// 2026-11-24 have it of such ones, too.
func lateText(r perf.Result, text string) string {
	counted := int64(r.LatPairs - r.LatDropped)
	if r.Scarce(perf.Latency) {
		counted = max(counted, 5) // those that waited least
	}
	for _, f := range []*perf.Figures{&r.Figures, r.TCP} {
		if f != nil && f.LatencyIterations < perf.LateTrips*counted {
			return "-"
		}
	}
	return text
}

// A perfRow is a result with what it was measured with.
type perfRow struct {
	cc     string
	result perf.Result
}

// perfRows puts the congestion controls of one operation and size below each other.
func perfRows(rec *record) (rows []perfRow) {
	for _, measured := range rec.Perf {
		for _, r := range measured.Results {
			rows = append(rows, perfRow{measured.Negotiated.CC, r})
		}
	}
	slices.SortStableFunc(rows, func(a, b perfRow) int {
		if a.result.Op != b.result.Op {
			return int(a.result.Op) - int(b.result.Op)
		}
		return a.result.Size - b.result.Size
	})
	return rows
}
