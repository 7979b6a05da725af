package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the sections, and then a table of all checks.
func (d *Document) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", d.Title)
	for _, s := range d.parts() {
		s.markdown(&b)
	}
	if checks := d.checks(); len(checks) > 0 {
		rows := [][]string{{"case", "requirement", "document", "verdict", "why"}}
		for i := range checks {
			rows = append(rows, checks[i].row())
		}
		b.WriteString(Markdown(rows))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Section) markdown(b *strings.Builder) {
	if s.Head != "" {
		b.WriteString(s.Head)
		if !strings.HasSuffix(s.Head, ".") { // it is a paragraph here
			b.WriteString(".")
		}
		b.WriteString("\n\n")
	}
	rows := slices.Concat(s.Table, s.Rows)
	if len(s.Lines) > 0 {
		rows = append(rows, []string{"", ""})
		for _, l := range s.Lines {
			rows = append(rows, []string{l.Label, l.Text})
		}
	}
	b.WriteString(Markdown(rows))
	if len(rows) > 0 {
		b.WriteString("\n")
	}
}

// Markdown returns a table, whose first row is its heading.
func Markdown(rows [][]string) string {
	var b strings.Builder
	for n, row := range rows {
		markdownRow(&b, row)
		if n == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

func (c *Check) row() []string {
	why := c.Why
	if c.Status == Failed {
		why = "expected " + c.Expected + "; got " + c.Got
	}
	return []string{"`" + c.ID() + "`", c.Requirements, c.Document, c.Verdict, why}
}

// markdownRow writes the cells of a table, in which neither bars nor line ends may
// stand.
func markdownRow(b *strings.Builder, cells []string) {
	for _, cell := range cells { // without the padding of the text's tables
		fmt.Fprintf(b, "| %s ", strings.NewReplacer("|", "\\|").Replace(strings.Join(strings.Fields(cell), " ")))
	}
	b.WriteString("|\n")
}
