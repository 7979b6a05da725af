package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/report"
)

// TestColumns has names on the left and figures on the right, and a table of both in Markdown.
func TestColumns(t *testing.T) {
	rows := [][]string{{"", "ahead"}, {"", "%"}, {"aligned", "10.5"}}
	d := &report.Document{Title: "Both", Sections: []report.Section{
		{Head: "Two rows of headings", Columns: report.Columns{Rows: rows, Figures: true}},
		{Columns: report.Columns{Rows: [][]string{{"KIND", "NAME"}, {"disk", "a"}}}},
	}}
	same(t, func(b *strings.Builder) error { return d.WriteText(b, false) }, `
Two rows of headings

         ahead
             %
 aligned  10.5
KIND  NAME
disk  a
`)
	same(t, func(b *strings.Builder) error { return d.WriteMarkdown(b) }, `
## Both

Two rows of headings.

|  | ahead |
|---|---|
|  | % |
| aligned | 10.5 |

| KIND | NAME |
|---|---|
| disk | a |

`)
}

// TestGrid has a group over its columns, one that is too narrow for its name, and columns without a group.
func TestGrid(t *testing.T) {
	g := report.Grid{
		{Head: "op", Width: 5, Left: true},
		{Group: "bandwidth", Head: "avg", Width: 8}, {Group: "bandwidth", Head: "[Mpps]", Width: 9},
		{Group: "narrow", Head: "x", Width: 3},
	}
	got := g.Heading() + g.Row([]string{"Write", "1.50", "0.01", "wider"})
	want := `        --- bandwidth ---   narrow
 op         avg    [Mpps]   x
 Write     1.50      0.01 wider
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestStream writes part by part what a report of the whole writes at once.
func TestStream(t *testing.T) {
	checks := []report.Check{
		{Group: "g", Name: "right", Verdict: "pass", Document: "RFC 5044 7"},
		{Group: "g", Name: "wrong", Verdict: "fail", Status: report.Failed,
			Details: []report.Line{{Label: "got", Text: "less"}}},
	}
	data := report.Lines{map[string]int{"first": 1}, map[string]int{"second": 2}, "the end"}
	end := &report.Document{Sections: []report.Section{{Head: "2 checks"}}}
	whole := report.Of(&report.Document{Judged: checks, Every: true, Sections: end.Sections}, data)
	for _, verbose := range []bool{false, true} {
		var parts, all strings.Builder
		streamed(t, report.NewTextStream(&parts, verbose), checks, end, data)
		if err := whole.WriteText(&all, verbose); err != nil || parts.String() != all.String() ||
			!strings.Contains(all.String(), "g/right") {
			t.Errorf("%v: in parts:\n%s\nas a whole:\n%s", err, &parts, &all)
		}
	}
	var parts, all strings.Builder
	streamed(t, report.NewJSONStream(&parts), checks, end, data)
	if err := whole.WriteJSON(&all); err != nil || parts.String() != all.String() ||
		all.String() != "{\"first\":1}\n{\"second\":2}\n\"the end\"\n" {
		t.Errorf("%v: in parts:\n%s\nas a whole:\n%s", err, &parts, &all)
	}
}

func streamed(t *testing.T, s *report.Stream, checks []report.Check, end *report.Document, data report.Lines) {
	t.Helper()
	for i := range checks {
		s.Check(&checks[i], data[i])
	}
	if err := s.End(end, data[len(checks)]); err != nil {
		t.Error(err)
	}
}

var errFull = errors.New("full")

// A bounded writer takes so many writes, and no more.
type bounded int

func (n *bounded) Write(b []byte) (int, error) {
	if *n--; *n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestStreamFails has a writer that fails at any part: the end tells.
func TestStreamFails(t *testing.T) {
	for n := range 2 {
		for _, of := range []func(w *bounded) *report.Stream{
			func(w *bounded) *report.Stream { return report.NewTextStream(w, false) },
			func(w *bounded) *report.Stream { return report.NewJSONStream(w) },
		} {
			w := bounded(n)
			s := of(&w)
			s.Check(&report.Check{Name: "one", Verdict: "pass"}, 1)
			if err := s.End(&report.Document{}, 2); !errors.Is(err, errFull) {
				t.Errorf("after %d writes: %v", n, err)
			}
		}
	}
	w := bounded(1)
	if err := report.Of(&report.Document{}, report.Lines{1, 2}).WriteJSON(&w); !errors.Is(err, errFull) {
		t.Errorf("a report of two lines: %v", err)
	}
}
