package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Report returns the report in all its forms. As text it has the figures as tables like
// those of the document, a line for each group of the wider matrix, and the rows that are
// not as demanded.
func (r *Report) Report() *report.Documented { return report.Of(r.document(), r) }

// Title is that of a report on the rows of a network.
func Title(over string) string { return "Dialects and kinds of RNIC, over " + over }

func (r *Report) document() *report.Document {
	d := &report.Document{Tool: "matrix", Title: Title(r.network), Interrupted: r.Interrupted,
		Took: report.OfMilliseconds(r.MS)}
	if r.Interrupted {
		d.Stopped = "interrupted"
	}
	for i := range r.Figures {
		d.Sections = append(d.Sections, r.Figures[i].section())
	}
	for rows := r.Wider; len(rows) > 0; {
		n := slices.IndexFunc(rows, func(row *Result) bool { return row.Group != rows[0].Group })
		if n < 0 {
			n = len(rows)
		}
		d.Sections = append(d.Sections, groupSection(rows[:n]))
		rows = rows[n:]
	}
	cells := wording.Count(r.Cells, "cell")
	if r.Interrupted {
		cells = fmt.Sprintf("interrupted: %d of %s run", r.Cells, wording.Count(r.picked, "cell"))
	}
	total := fmt.Sprintf("%s, %d as demanded (%.1f s)", cells, r.AsDemanded, r.MS/1000)
	d.Sections = append(d.Sections, report.Section{Head: total})
	return d
}

// section is a figure as the document has it.
func (f *FigureReport) section() report.Section {
	s := report.Section{
		Head: fmt.Sprintf("Figure %d: %s\nRows: initiator. Columns: responder. M=x/y: markers in the receive direction of each.",
			f.Number, f.Title),
		Table: [][]string{{""}},
	}
	for _, c := range f.Cells {
		s.Checks = append(s.Checks, c.check())
		line := slices.IndexFunc(s.Table, func(row []string) bool { return row[0] == c.initiator.String() })
		if line < 0 {
			line = len(s.Table)
			s.Table = append(s.Table, []string{c.initiator.String()})
		}
		column := slices.Index(s.Table[0], c.responder.String())
		if column < 0 {
			column = len(s.Table[0])
			s.Table[0] = append(s.Table[0], c.responder.String())
		}
		for len(s.Table[line]) <= column {
			s.Table[line] = append(s.Table[line], "")
		}
		s.Table[line][column] = c.shown()
	}
	return s
}

// shown is what a cell of a figure is drawn with: what the document has, or if it
// differs, what was found.
func (c *Cell) shown() string {
	if c.OK {
		return fmt.Sprintf("%-9s ok", c.Printed)
	}
	return fmt.Sprintf("%-9s FAIL", c.found)
}

// groupSection counts the rows of a group.
func groupSection(rows []*Result) report.Section {
	right, s := 0, report.Section{}
	for i := range rows {
		right += wording.Bit(rows[i].OK)
		s.Checks = append(s.Checks, rows[i].check())
	}
	s.Lines = []report.Line{{Label: rows[0].Group,
		Text: fmt.Sprintf("%3d %-4s %3d as demanded", len(rows), wording.Things(len(rows), "row")+",", right)}}
	return s
}

// check is a row as all reports have it.
func (r *Result) check() report.Check {
	c := report.Check{
		Group: r.Group, Name: r.Name, Requirements: strings.Join(r.Requirements, " "), Document: r.Section,
		Verdict: "pass", Expected: r.Demanded, Got: r.Got,
		Details: []report.Line{{Label: "demanded", Text: r.Demanded}, {Label: "got", Text: r.Got}},
		Took:    report.OfMilliseconds(r.MS),
	}
	if !r.OK {
		c.Status, c.Verdict = report.Failed, "fail"
	}
	for _, d := range r.Differences {
		c.Details = append(c.Details, report.Line{Label: "differs", Text: d})
	}
	for _, w := range r.Wire {
		c.Details = append(c.Details, report.Line{Label: "wire", Text: w})
	}
	for _, e := range []report.Line{{Label: "initiator", Text: r.InitiatorError},
		{Label: "responder", Text: r.ResponderError}} {
		if e.Text != "" {
			c.Details = append(c.Details, report.Line{Label: e.Label, Text: ascii(e.Text)})
		}
	}
	return c
}

// ascii replaces what is none: private data in an error text may be in any letters.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, text)
}
