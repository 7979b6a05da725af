package main

import (
	"fmt"
	"strings"
)

// briefTables are those of the page for users, by name: of the machine that measured last.
func briefTables(rec *record) map[string]string {
	return map[string]string{
		"goals": verdictsText(rec), "short connections": rec.Measured["short connections"].text() + shortTable(rec),
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
