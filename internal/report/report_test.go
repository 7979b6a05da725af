package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// document has one of everything.
func document() *report.Document {
	words := strings.Repeat("word ", 30)
	return &report.Document{
		Tool: "matrix", Title: "All of it",
		Sections: []report.Section{
			{
				Head:  "Two by one.",
				Table: [][]string{{"", "a|b", "c"}, {"row", "wide   cell", "x"}, {"short"}},
				Checks: []report.Check{
					{Group: "g", Name: "right", Document: "RFC 5044 7", Verdict: "pass", Took: time.Second},
					{
						Group: "g", Name: "wrong", Document: "RFC 5044 8", Verdict: "fail", Status: report.Failed,
						Expected: "up", Got: "close",
						Details: []report.Line{{Label: "got", Text: words}, {Text: "as\nit is"}, {Label: "nothing"}},
					},
				},
			},
			{Lines: []report.Line{{"label", "text"}, {"a label of more than twenty-two", "text"}}},
		},
	}
}

func same(t *testing.T, write func(*strings.Builder) error, want string) {
	t.Helper()
	var b strings.Builder
	testrig.Must(t, write(&b))
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestText(t *testing.T) {
	same(t, func(b *strings.Builder) error { return document().WriteText(b, false) }, `
Two by one.
+-------+-------------+---+
|       | a|b         | c |
+-------+-------------+---+
| row   | wide   cell | x |
| short |             |   |
+-------+-------------+---+

fail           g/wrong
    RFC 5044 8
    got     word word word word word word word word word word word word word word word word word
            word word word word word word word word word word word word word
    as
    it is
  label                  text
  a label of more than twenty-two
                         text
`)
}

func TestMarkdown(t *testing.T) {
	same(t, func(b *strings.Builder) error { return document().WriteMarkdown(b) }, `
## All of it

Two by one.

|  | a\|b | c |
|---|---|---|
| row | wide cell | x |
| short |

|  |  |
|---|---|
| label | text |
| a label of more than twenty-two | text |

| case | requirement | document | verdict | why |
|---|---|---|---|---|
| `+"`g/right`"+` |  | RFC 5044 7 | pass |  |
| `+"`g/wrong`"+` |  | RFC 5044 8 | fail | expected up; got close |
`)
}

// TestMarkdownCells keeps a cell in its row, and in its column.
func TestMarkdownCells(t *testing.T) {
	d := report.Document{Sections: []report.Section{{Table: [][]string{{"", "two\nlines", "a|b", "\r\nlast\n"}}}}}
	var b strings.Builder
	if err := d.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "|  | two lines | a\\|b | last |\n") {
		t.Errorf("%v: %s", err, &b)
	}
}

func TestJUnit(t *testing.T) {
	d := document()
	d.Sections[0].Checks[1].Details = nil
	d.Judged = []report.Check{{Name: "alone", Verdict: "inconclusive", Status: report.Skipped, Why: "too late"}}
	same(t, func(b *strings.Builder) error { return d.WriteJUnit(b) }, `
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="iwarp matrix: All of it" tests="3" failures="1" errors="0" skipped="1" time="1.000">
  <testcase classname="matrix" name="alone" time="0.000">
    <skipped message="inconclusive: too late"></skipped>
  </testcase>
  <testcase classname="matrix.g" name="right" time="1.000"></testcase>
  <testcase classname="matrix.g" name="wrong" time="0.000">
    <failure message="expected up, got close">fail           g/wrong&#xA;    RFC 5044 8&#xA;</failure>
  </testcase>
</testsuite>
`)
}

// TestStopped has a run that is not complete: no form looks like one in which nothing is wrong.
func TestStopped(t *testing.T) {
	d := &report.Document{
		Tool: "conform", Title: "Responder", Stopped: "nobody is there",
		Sections: []report.Section{{Head: "1 skipped"}},
		Judged: []report.Check{{Name: "alone", Verdict: "inconclusive",
			Status: report.Skipped, Why: "no connection"}},
	}
	same(t, func(b *strings.Builder) error { return d.WriteText(b, false) }, `
stopped: nobody is there
1 skipped
`)
	same(t, func(b *strings.Builder) error { return d.WriteMarkdown(b) }, `
## Responder

stopped: nobody is there.

1 skipped.

| case | requirement | document | verdict | why |
|---|---|---|---|---|
| `+"`alone`"+` |  |  | inconclusive | no connection |
`)
	same(t, func(b *strings.Builder) error { return d.WriteJUnit(b) }, `
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="iwarp conform: Responder" tests="2" failures="0" errors="1" skipped="1" time="0.000">
  <testcase classname="conform" name="alone" time="0.000">
    <skipped message="inconclusive: no connection"></skipped>
  </testcase>
  <testcase classname="conform" name="run" time="0.000">
    <error message="stopped: nobody is there"></error>
  </testcase>
</testsuite>
`)
	d.Stopped, d.Interrupted = "interrupted", true // which is no error
	same(t, func(b *strings.Builder) error { return d.WriteJUnit(b) }, `
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="iwarp conform: Responder" tests="2" failures="0" errors="0" skipped="2" time="0.000">
  <testcase classname="conform" name="alone" time="0.000">
    <skipped message="inconclusive: no connection"></skipped>
  </testcase>
  <testcase classname="conform" name="run" time="0.000">
    <skipped message="stopped: interrupted"></skipped>
  </testcase>
</testsuite>
`)
}
