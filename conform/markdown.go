package conform

import (
	"fmt"
	"io"
	"strings"
)

// A Report is what a run of the suite came to.
type Report struct {
	Title   string // what was tested, and how
	Results []Result
}

// WriteMarkdown writes a table of results under the report's title, and before it
// how many there are of each verdict.
func (p *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	var sum Summary
	for i := range p.Results {
		sum.Add(p.Results[i].Verdict)
	}
	fmt.Fprintf(&b, "## %s\n\n%v.\n\n| case | requirement | document | verdict | why |\n|---|---|---|---|---|\n", p.Title, &sum)
	for i := range p.Results {
		r := &p.Results[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Case.ID, strings.Join(r.Case.Requirements, " "), r.Case.Section, r.Verdict, cell(r))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns why a verdict is what it is.
func cell(r *Result) string {
	why := r.Why
	if r.Verdict == Fail {
		why = "expected " + r.Expected + "; got " + r.Got
	}
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(why)
}
