package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/report"
)

// briefTables are those of the page for users, by name: of the machine that measured last, without the columns that
// few need.
func briefTables(rec *record) map[string]string {
	here := func(part string, table func(*record) string) string { return rec.Measured[part].text() + table(rec) }
	return map[string]string{
		"goals": verdictsText(rec), "perf": here("perf", briefPerfTable),
		"connections": here("growth", connectionsTable), "short connections": here("short connections", shortTable),
	}
}

// verdictsText counts the verdicts on each machine.
func verdictsText(rec *record) string {
	all := append([]*record{rec}, rec.with("goals")...)
	goals := goalsOf(all)
	var b strings.Builder
	for _, r := range all {
		counts := make(map[string]int)
		for _, g := range goals {
			counts[verdictWord(r.foundOf(g)[1])]++
		}
		at := r.Measured["goals"]
		var parts []string
		for _, word := range []string{"met", "missed", "inconclusive", "not measured"} {
			if counts[word] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
			}
		}
		fmt.Fprintf(&b, "- %d goals on %s (%s, commit %s): %s.\n", len(goals), at.Machine.CPU, at.Date, at.Commit,
			strings.Join(parts, ", "))
	}
	return b.String()
}

// verdictWord is a verdict without what makes it less sure.
func verdictWord(verdict string) string {
	for _, word := range []string{"met", "missed"} {
		if strings.HasPrefix(verdict, word) {
			return word
		}
	}
	return verdict
}

// briefPerfTable has the ratios of perfTable, of the smallest and the largest messages.
func briefPerfTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("op", "bytes", "congestion control", "bandwidth", "latency", "CPU"))
	rows := perfRows(rec)
	for _, row := range rows {
		r := row.result
		if r.Size != rows[0].result.Size && r.Size != rows[len(rows)-1].result.Size {
			continue
		}
		b.WriteString(report.MarkdownRow(r.Op.String(), strconv.Itoa(r.Size), row.cc, ratioText(r, "ratio_bw"),
			ratioText(r, "ratio_lat"), ratioText(r, "ratio_cpu")))
	}
	return b.String()
}
