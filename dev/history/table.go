package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/dev/internal/document"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// The tables stand in the document between these lines.
const (
	begin = "<!-- made by dev/history -->\n"
	end   = "<!-- end of what dev/history makes -->\n"
)

// render replaces what stands between them in the document.
func render(dir string) error {
	history, err := readHistory(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, ok := document.Between(string(text), begin, end, tables(history))
	if !ok {
		return errors.New(file + " has no place for the tables")
	}
	return os.WriteFile(file, []byte(doc), 0o644)
}

// ratios are the tables, of which each has one ratio.
var ratios = [...]struct{ title, key string }{
	{"Bandwidth, more is better", "ratio_bw"},
	{"Latency, less is better", "ratio_lat"},
	{"CPU time of a message while bandwidth is measured, less is better", "ratio_cpu"},
}

// shown are the works that the tables have; history.jsonl has all.
var shown = [...]struct {
	op   perf.Op
	size int
}{{perf.Send, 64}, {perf.Send, 4096}, {perf.Send, 1 << 20}, {perf.Write, 64}, {perf.Write, 64 << 10},
	{perf.Write, 1 << 20}, {perf.Read, 64}, {perf.Read, 1 << 20}}

// tables has where and when, and what was found.
func tables(history []run) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("run", "date", "commit", "machine",
		"congestion control", "disturbed", "remark"))
	for i, r := range history {
		b.WriteString(report.MarkdownRow(fmt.Sprint(i+1), r.Date, r.commit(), r.Machine.Text(), r.CC,
			fmt.Sprintf("%.0f %%", 100*r.Disturbed), r.remark()))
	}
	for _, ratio := range ratios {
		b.WriteString("\n### " + ratio.title + "\n\n")
		heading := []string{"run"}
		for _, w := range shown {
			heading = append(heading, fmt.Sprintf("%v %d", w.op, w.size))
		}
		b.WriteString(report.MarkdownHeading(heading...))
		for i, r := range history {
			row := []string{fmt.Sprint(i + 1)}
			for _, w := range shown {
				row = append(row, r.cell(w.op, w.size, ratio.key))
			}
			b.WriteString(report.MarkdownRow(row...))
		}
	}
	return b.String()
}

func (r *run) commit() string {
	if r.Modified {
		return "`" + r.Commit + "`, changed"
	}
	return "`" + r.Commit + "`"
}

func (r *run) remark() string {
	if !r.Busy {
		return r.Note
	}
	return strings.Join(slices.DeleteFunc([]string{"busy machine", r.Note},
		func(s string) bool { return s == "" }), "; ")
}

// cell is a ratio with its quartiles, "busy" if it is inconclusive, or "-" if there is none.
func (r *run) cell(op perf.Op, size int, key string) string {
	i := slices.IndexFunc(r.Works, func(w work) bool { return w.Op == op && w.Size == size })
	if i < 0 {
		return "-"
	}
	if !r.Works[i].Repeats(key) {
		return "busy"
	}
	return r.Works[i].Text(key, "%.2f (%.2f - %.2f)")
}
