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
		if n == 0 {
			b.WriteString(MarkdownHeading(row...))
		} else {
			b.WriteString(MarkdownRow(row...))
		}
	}
	return b.String()
}

// MarkdownHeading returns the first two lines of a table.
func MarkdownHeading(cells ...string) string {
	return MarkdownRow(cells...) + strings.Repeat("|---", len(cells)) + "|\n"
}

func (c *Check) row() []string {
	why := c.Why
	if c.Status == Failed {
		why = "expected " + c.Expected + "; got " + c.Got
	}
	return []string{"`" + c.ID() + "`", c.Requirements, c.Document, c.Verdict, why}
}

// MarkdownRow returns a line of a table. In its cells neither bars nor line ends may stand.
func MarkdownRow(cells ...string) string {
	var b strings.Builder
	for _, cell := range cells { // without the padding of the text's tables
		fmt.Fprintf(&b, "| %s ", strings.NewReplacer("|", "\\|").Replace(strings.Join(strings.Fields(cell), " ")))
	}
	return b.String() + "|\n"
}
