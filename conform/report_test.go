package conform_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// results are one of each verdict.
func results() []conform.Result {
	c := conform.Case{
		ID: "startup/req-r", Requirements: []string{"Q05", "Q06"}, Section: "RFC 5044 7.1.1",
		Role: mpa.RoleResponder, Text: "R is not checked.",
	}
	other := c
	other.ID, other.Requirements = "rtr/req-write", []string{"E09"}
	return []conform.Result{
		{Case: c, Verdict: conform.Pass, Took: 1500 * time.Microsecond},
		{
			Case: c, Verdict: conform.Fail, Expected: "a Reply", Got: "a | FIN", Took: time.Second,
			Dialogue: []conform.Entry{
				{At: time.Millisecond, Kind: conform.Sent, Text: "Request", Bytes: []byte("MPA ID Req Frame\x00")},
				{At: 2 * time.Millisecond, Kind: conform.Saw, Text: "the connection is closed by FIN"},
			},
		},
		{Case: other, Verdict: conform.NotApplicable, Why: "no such thing"},
		{Case: other, Verdict: conform.Inconclusive, Why: "did not get that far"},
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// failure is the text of the second result.
const failure = `fail           startup/req-r                      Q05 Q06
    R is not checked. (RFC 5044 7.1.1)
        1.000 ms -> Request
                   4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65
                   00
        2.000 ms .. the connection is closed by FIN
    expected: a Reply
    got:      a | FIN
`

func TestText(t *testing.T) {
	var b bytes.Buffer
	report := conform.Report{Results: results()}
	testrig.Must(t, report.WriteText(&b, false))
	same(t, b.String(), `
pass           startup/req-r                      Q05 Q06
`+failure+`not applicable rtr/req-write                      E09  (no such thing)
inconclusive   rtr/req-write                      E09  (did not get that far)
1 passed, 1 failed, 1 not applicable, 1 inconclusive
`)
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	report := conform.Report{Results: results()[1:3]}
	testrig.Must(t, report.WriteJSON(&b))
	same(t, b.String(), `
{"id":"startup/req-r","requirements":["Q05","Q06"],"section":"RFC 5044 7.1.1","role":"responder","text":"R is not checked.","verdict":"fail","expected":"a Reply","got":"a | FIN","ms":1000,"dialogue":[{"at_ms":1,"kind":"sent","text":"Request","bytes":"4d504120494420526571204672616d6500"},{"at_ms":2,"kind":"saw","text":"the connection is closed by FIN"}]}
{"id":"rtr/req-write","requirements":["E09"],"section":"RFC 5044 7.1.1","role":"responder","text":"R is not checked.","verdict":"not applicable","why":"no such thing","ms":0,"dialogue":[]}
{"passed":0,"failed":1,"not_applicable":1,"inconclusive":0}
`)
	for line := range bytes.Lines(b.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	report := conform.Report{Title: "Responder", Results: results()}
	testrig.Must(t, report.WriteJUnit(&b))
	same(t, b.String(), `
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="iwarp conform: Responder" tests="4" failures="1" errors="0" skipped="2" time="1.002">
  <testcase classname="conform.startup" name="req-r" time="0.002"></testcase>
  <testcase classname="conform.startup" name="req-r" time="1.000">
    <failure message="expected a Reply, got a | FIN">`+strings.NewReplacer("\n", "&#xA;", ">", "&gt;").Replace(failure)+`</failure>
  </testcase>
  <testcase classname="conform.rtr" name="req-write" time="0.000">
    <skipped message="not applicable: no such thing"></skipped>
  </testcase>
  <testcase classname="conform.rtr" name="req-write" time="0.000">
    <skipped message="inconclusive: did not get that far"></skipped>
  </testcase>
</testsuite>
`)
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	report := conform.Report{Title: "Responder", Results: results()}
	testrig.Must(t, report.WriteMarkdown(&b))
	same(t, b.String(), `
## Responder

1 passed, 1 failed, 1 not applicable, 1 inconclusive.

| case | requirement | document | verdict | why |
|---|---|---|---|---|
| `+"`startup/req-r`"+` | Q05 Q06 | RFC 5044 7.1.1 | pass |  |
| `+"`startup/req-r`"+` | Q05 Q06 | RFC 5044 7.1.1 | fail | expected a Reply; got a \| FIN |
| `+"`rtr/req-write`"+` | E09 | RFC 5044 7.1.1 | not applicable | no such thing |
| `+"`rtr/req-write`"+` | E09 | RFC 5044 7.1.1 | inconclusive | did not get that far |
`)
}

func TestList(t *testing.T) {
	var b bytes.Buffer
	cases := []conform.Case{
		{ID: "a/b", Requirements: []string{"Q01"}, Section: "RFC 5044 7", Role: mpa.RoleResponder, Text: "One."},
		{
			ID: "c/d", Requirements: []string{"E01"}, Section: "RFC 6581 9", Role: mpa.RoleInitiator, Text: "Two.",
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRtr}, App: conform.AppRping,
			Slow: true, Unsafe: "it may crash",
		},
	}
	conform.List(&b, cases)
	same(t, b.String(), `
a/b  (peer responder)
    Q01  RFC 5044 7
    One.
c/d  (peer initiator, rfc6581, rtr2007, application rping, slow, unsafe)
    E01  RFC 6581 9
    Two.
    unsafe: it may crash
`)
	b.Reset()
	testrig.Must(t, conform.ListJSON(&b, cases))
	same(t, b.String(), `
{"id":"a/b","requirements":["Q01"],"section":"RFC 5044 7","role":"responder","app":"none","text":"One."}
{"id":"c/d","requirements":["E01"],"section":"RFC 6581 9","role":"initiator","dialects":["rfc6581","rtr2007"],"app":"rping","slow":true,"unsafe":"it may crash","text":"Two."}
`)
}

// TestLongBytes shows that a long entry is cut in text, and whole in JSON.
func TestLongBytes(t *testing.T) {
	e := conform.Entry{Kind: conform.Received, Text: "much", Bytes: make([]byte, 1000)}
	if s := e.String(); !strings.Contains(s, "... and 904 more") || strings.Count(s, "\n") != 7 {
		t.Errorf("got %s", s)
	}
	b, err := json.Marshal(e)
	if err != nil || len(b) < 2000 {
		t.Errorf("%d bytes of JSON, %v", len(b), err)
	}
}
