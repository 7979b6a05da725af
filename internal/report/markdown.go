package report

import (
	"fmt"
	"io"
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
		b.WriteString("| case | requirement | document | verdict | why |\n|---|---|---|---|---|\n")
		for i := range checks {
			checks[i].markdown(&b)
		}
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
	rows := s.Table
	if len(s.Lines) > 0 {
		rows = append(rows, []string{"", ""})
		for _, l := range s.Lines {
			rows = append(rows, []string{l.Label, l.Text})
		}
	}
	for n, row := range rows {
		markdownRow(b, row)
		if n == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	if len(rows) > 0 {
		b.WriteString("\n")
	}
}

func (c *Check) markdown(b *strings.Builder) {
	why := c.Why
	if c.Status == Failed {
		why = "expected " + c.Expected + "; got " + c.Got
	}
	markdownRow(b, []string{"`" + c.ID() + "`", c.Requirements, c.Document, c.Verdict, why})
}

// markdownRow writes the cells of a table, in which neither bars nor line ends may
// stand.
func markdownRow(b *strings.Builder, cells []string) {
	for _, cell := range cells { // without the padding of the text's tables
		fmt.Fprintf(b, "| %s ", strings.NewReplacer("|", "\\|").Replace(strings.Join(strings.Fields(cell), " ")))
	}
	b.WriteString("|\n")
}
