package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/goiwarp/iwarp/internal/wording"
)

const (
	// columns that a text fits in, where it can be wrapped.
	columns = 100
	// labelColumns is the room for a label.
	labelColumns = 22
)

// WriteText writes the document as text.
func (d *Document) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	for i := range d.Judged {
		if c := &d.Judged[i]; d.Every && !c.Quiet || verbose || c.Status == Failed {
			c.write(&b, verbose)
		}
	}
	for _, s := range d.parts() {
		s.write(&b, verbose)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Section) write(b *strings.Builder, verbose bool) {
	if s.Head != "" {
		fmt.Fprintf(b, "%s\n", s.Head)
	}
	for _, l := range s.Lines {
		l.write(b)
	}
	writeTable(b, s.Table)
	if s.Head != "" && len(s.Rows) > 0 {
		b.WriteString("\n")
	}
	s.Columns.write(b)
	for i := range s.Checks {
		if c := &s.Checks[i]; verbose || c.Status == Failed {
			c.write(b, verbose)
		}
	}
}

// write prints a label that is too long on a line of its own.
func (l Line) write(b *strings.Builder) {
	if len(l.Label) > labelColumns {
		fmt.Fprintf(b, "  %s\n", l.Label)
		l.Label = ""
	}
	fmt.Fprintf(b, "  %-*s %s\n", labelColumns, l.Label, l.Text)
}

// writeTable draws a table, with a rule below its first row.
func writeTable(b *strings.Builder, table [][]string) {
	if len(table) == 0 {
		return
	}
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for n, cell := range row {
			widths[n] = max(widths[n], len(cell))
		}
	}
	rule := "+"
	for _, n := range widths {
		rule += strings.Repeat("-", n+2) + "+"
	}
	fmt.Fprintln(b, rule)
	for i, row := range table {
		b.WriteString("|")
		for n := range widths {
			cell := ""
			if n < len(row) { // a row may lack cells at its end
				cell = row[n]
			}
			fmt.Fprintf(b, " %-*s |", widths[n], cell)
		}
		b.WriteString("\n")
		if i == 0 {
			fmt.Fprintln(b, rule)
		}
	}
	fmt.Fprintf(b, "%s\n\n", rule)
}

// write gives each column the room that it needs.
func (c Columns) write(b *strings.Builder) {
	flags, between, end := uint(0), 2, "\n"
	if c.Figures {
		flags, between, end = tabwriter.AlignRight, 1, "\t\n"
	}
	w := tabwriter.NewWriter(b, 0, 0, between, ' ', flags)
	for _, row := range c.Rows {
		_, _ = io.WriteString(w, strings.Join(row, "\t")+end) // a Builder takes everything
	}
	_ = w.Flush()
}

// write prints a line, and the details if it failed or all are wanted.
//
//housecheck:texts It prints: no blanks at the end of a line.
func (c *Check) write(b *strings.Builder, verbose bool) {
	line := fmt.Sprintf("%-14s %-34s", c.Verdict, c.ID())
	if between := " "; c.Requirements != "" {
		if len(line)+len(between)+len(c.Requirements) > columns {
			between = "\n" + indent
		}
		line += between + c.Requirements
	}
	if c.Why != "" {
		line += "  (" + c.Why + ")"
	}
	fmt.Fprintln(b, strings.TrimRight(line, " "))
	if verbose || c.Status == Failed {
		c.writeDetails(b)
	}
}

const indent = "    "

// writeDetails indents the lines of a text that come after its first.
//
//housecheck:texts It prints.
func (c *Check) writeDetails(b *strings.Builder) {
	if about := c.About(); about != "" {
		fmt.Fprintf(b, "%s%s\n", indent, about)
	}
	for i := range c.Dialogue {
		fmt.Fprintf(b, "%s%s\n", indent, strings.ReplaceAll(c.Dialogue[i].String(), "\n", "\n"+indent))
	}
	width := 0
	for _, l := range c.Details {
		width = max(width, len(l.Label))
	}
	for _, l := range c.Details {
		if l.Label == "" {
			fmt.Fprintf(b, "%s%s\n", indent, strings.ReplaceAll(l.Text, "\n", "\n"+indent))
			continue
		}
		head := fmt.Sprintf("%s%-*s ", indent, width, l.Label)
		for line := range wording.Lines(l.Text, max(columns-len(head), 1)) {
			fmt.Fprintf(b, "%s%s\n", head, line)
			head = strings.Repeat(" ", len(head))
		}
	}
}
