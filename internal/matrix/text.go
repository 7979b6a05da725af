package matrix

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"
)

// columns that the text is to fit in.
const columns = 100

// Print writes the report as text: the figures as tables like the document's, a line
// for each group of the wider matrix, and the rows that are not as demanded. verbose
// has every row, with what both ends say.
func (r *Report) Print(w io.Writer, verbose bool) error {
	p := printer{bufio.NewWriter(w)}
	for i := range r.Figures {
		p.figure(&r.Figures[i], verbose)
	}
	p.wider(r.Wider, verbose)
	p.linef("%d cells, %d as demanded (%.1f s)", r.Cells, r.AsDemanded, r.MS/1000)
	return p.Flush()
}

type printer struct{ *bufio.Writer }

func (p printer) linef(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// figure draws a figure. A cell that differs has a number, and is explained below.
func (p printer) figure(f *FigureReport, verbose bool) {
	table := f.table()
	p.linef("Figure %d: %s", f.Number, f.Title)
	p.linef("Rows: initiator. Columns: responder. M=x/y: markers in the receive direction of each.")
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for n, text := range line {
			widths[n] = max(widths[n], len(text))
		}
	}
	rule := "+"
	for _, n := range widths {
		rule += strings.Repeat("-", n+2) + "+"
	}
	p.linef("%s", rule)
	for n, line := range table {
		text := "|"
		for n, cell := range line {
			text += fmt.Sprintf(" %-*s |", widths[n], cell)
		}
		p.linef("%s", text)
		if n == 0 {
			p.linef("%s", rule)
		}
	}
	p.linef("%s", rule)
	p.cells(f, verbose)
	p.linef("")
}

// cells explains cells: those that differ, or all.
func (p printer) cells(f *FigureReport, verbose bool) {
	number := 0
	for i := range f.Cells {
		c := &f.Cells[i].Result
		number += bit(!c.OK)
		switch {
		case verbose:
			p.result(c, true)
		case !c.OK:
			p.linef("[%d]", number)
			p.result(c, false)
		}
	}
}

// table returns the texts of a figure, the headings first.
func (f *FigureReport) table() [][]string {
	lines, cols, number := []string{}, []string{}, 0
	texts := map[[2]string]string{}
	for _, c := range f.Cells {
		line, column := heading(c.Initiator, c.InitiatorMarkers), heading(c.Responder, c.ResponderMarkers)
		lines, cols = known(lines, line), known(cols, column)
		number += bit(!c.OK)
		texts[[2]string{line, column}] = fmt.Sprintf("%-9s %s", c.shown(), word(c.OK, "ok", fmt.Sprintf("[%d]", number)))
	}
	table := [][]string{append([]string{""}, cols...)}
	for _, line := range lines {
		cells := []string{line}
		for _, column := range cols {
			cells = append(cells, texts[[2]string{line, column}])
		}
		table = append(table, cells)
	}
	return table
}

func heading(kind string, markers bool) string {
	return fmt.Sprintf("%s M=%d", word(kind == "rdmac", "RDMAC", kind), bit(markers))
}

// known appends a text that is not there yet.
func known(texts []string, text string) []string {
	for _, t := range texts {
		if t == text {
			return texts
		}
	}
	return append(texts, text)
}

// shown is what a cell of a figure is drawn with: what the document has, or if it
// differs, what was found.
func (c *Cell) shown() string { return word(c.OK, c.Printed, c.found) }

// wider prints the groups.
func (p printer) wider(rows []Result, verbose bool) {
	for len(rows) > 0 {
		n, right := 0, 0
		for n < len(rows) && rows[n].Group == rows[0].Group {
			right += bit(rows[n].OK)
			n++
		}
		p.linef("%-18s %3d rows, %3d as demanded", rows[0].Group, n, right)
		for i := range rows[:n] {
			if verbose || !rows[i].OK {
				p.result(&rows[i], verbose)
			}
		}
		rows = rows[n:]
	}
}

// result prints a row: what differs and, if it is wanted, everything.
func (p printer) result(r *Result, all bool) {
	p.wrap(fmt.Sprintf("  %-7s ", word(r.OK, "ok", "DIFFERS")), r.Name)
	const indent = "          "
	if !r.OK || all {
		p.wrap(indent+"of       ", r.Requirement)
	}
	if all {
		p.wrap(indent+"demanded ", r.Demanded)
		p.wrap(indent+"got      ", r.Got)
	}
	for _, d := range r.Differences {
		p.wrap(indent+"differs  ", d)
	}
	if !r.OK || all {
		for _, line := range r.Wire {
			p.wrap(indent+"wire     ", line)
		}
		p.wrap(indent+"initiator ", r.InitiatorError)
		p.wrap(indent+"responder ", r.ResponderError)
	}
}

// wrap prints a text behind a heading, if there is one, in lines that fit.
func (p printer) wrap(heading, text string) {
	room := columns - len(heading)
	for line := range lines(strings.Fields(ascii(text)), room) {
		p.linef("%s%s", heading, line)
		heading = strings.Repeat(" ", len(heading))
	}
}

// lines fills lines of so many columns with words. A longer word is cut.
func lines(words []string, room int) iter.Seq[string] {
	return func(yield func(string) bool) {
		line := ""
		for _, word := range words {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) <= room:
				line += " " + word
			case !yield(line):
				return
			default:
				line = word
			}
			for ; len(line) > room; line = line[room:] {
				if !yield(line[:room]) {
					return
				}
			}
		}
		if line != "" {
			yield(line)
		}
	}
}

// ascii replaces what is none.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 126 {
			return '?'
		}
		return r
	}, text)
}
