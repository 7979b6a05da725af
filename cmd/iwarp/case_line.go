package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/conform"
)

// A countLine is a progressLine that tells how many of a number of things are done, and how long the rest takes.
type countLine struct {
	*progressLine
	all, done int
	began     time.Time
}

// barLength is that of a bar, in columns.
const barLength = 20

// one is called when one more is done.
func (l *countLine) one(what string) {
	l.done++
	l.text(fmt.Sprintf("%s %d/%d%s  %s", bar(l.done, l.all), l.done, l.all, l.left(), what))
}

// left is an estimate of the rest, once there can be one.
func (l *countLine) left() string {
	took := time.Since(l.began)
	if took < time.Second || l.done == 0 {
		return ""
	}
	rest := took / time.Duration(l.done) * time.Duration(max(l.all-l.done, 0))
	return fmt.Sprintf("  %v left", rest.Round(time.Second))
}

// bar shows the done part of all.
func bar(done, all int) string {
	full := barLength * min(done, all) / max(all, 1)
	return strings.Repeat("█", full) + strings.Repeat("░", barLength-full)
}

// A groupPrinter prints a line for each group of cases on a terminal, in place of one for each case. Failures are
// printed as ever.
type groupPrinter struct {
	out   io.Writer
	fail  func(*conform.Result)
	line  *countLine
	group string
	sum   conform.Summary // of the group
}

// result notes one.
func (p *groupPrinter) result(r *conform.Result) {
	group, _, _ := strings.Cut(r.Case.ID, "/")
	if group != p.group {
		p.end()
		p.group = group
	}
	p.sum.Add(r.Verdict)
	if r.Verdict == conform.Fail {
		p.line.clear()
		p.fail(r)
	}
	p.line.one(r.Case.ID)
}

// end prints the line of a group.
func (p *groupPrinter) end() {
	p.line.clear()
	if p.group != "" {
		fmt.Fprintf(p.out, "%-12s %v\n", p.group, &p.sum)
	}
	p.group, p.sum = "", conform.Summary{}
}
