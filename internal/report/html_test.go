package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestHTML: the page has the result before everything else, what failed with its ladder, and what a peer says as text.
func TestHTML(t *testing.T) {
	d := document()
	d.Peer, d.Version, d.Began = "192.0.2.1:7174", "v1.2.3", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d.Sections[0].Checks[1].Dialogue = []report.Step{
		{Mark: report.Sent, Kind: "startup", Text: "a question", Bytes: []byte("question")},
		{At: time.Millisecond, Mark: report.Received, Kind: "startup", Text: "<script>alert(1)</script>"},
	}
	at := 0
	page := html(t, d)
	for _, want := range []string{
		"Content-Security-Policy", "default-src &#39;none&#39;", `<span class="badge error">1 failed</span>`,
		"192.0.2.1:7174", "v1.2.3", "2026-01-02 03:04:05 UTC", `<a href="#f1">g/wrong</a>`, `<article id="f1"`,
		`<line class="arrow"`, "&lt;script&gt;alert(1)", "71 75 65 73 74 69 6f 6e", "<h2>Two by one.</h2>", "<th>row</th><td>wide   cell</td>",
		"g: 1 pass, 1 fail", "right",
	} {
		n := strings.Index(page[at:], want)
		if n < 0 {
			t.Fatalf("no %s after %s", want, page[max(at-100, 0):at])
		}
		at += n
	}
	if strings.Contains(page, "<script") {
		t.Error("there is a script")
	}
}

// TestHTMLStopped: a run that is not complete does not look like one in which nothing is wrong.
func TestHTMLStopped(t *testing.T) {
	page := html(t, &report.Document{Title: "Responder", Stopped: "nobody is there", Sections: []report.Section{{Head: "1 skipped"}}})
	if want := `<span class="badge warning">not complete</span> stopped: nobody is there. 1 skipped</p>`; !strings.Contains(page, want) {
		t.Errorf("no %s in\n%s", want, page)
	}
}

func html(t *testing.T, d *report.Document) string {
	t.Helper()
	var b strings.Builder
	testrig.Must(t, d.WriteHTML(&b))
	return b.String()
}
