package page_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/mpa"
)

// reported is the page of a report, which has the style of these pages.
type reported func(io.Writer) error

// Write writes the page.
func (r reported) Write(w io.Writer) error { return r(w) }

// conformed is a run of conform in which a case failed.
func conformed() *conform.Report {
	request, reply := []byte(mpa.KeyRequest+"\x40\x02\x00\x00"), []byte(mpa.KeyReply+"\x40\x09\x00\x00")
	wrong := conform.Result{
		Case:    conform.Case{ID: "startup/req-whole", Requirements: []string{"Q01", "Q09"}, Section: "RFC 5044 7.1.2", Text: "It is answered."},
		Verdict: conform.Fail, Expected: "a Reply of revision 2", Got: "a Reply of revision 9 " + strings.Repeat("and more ", 40),
		Dialogue: []conform.Entry{
			{Kind: conform.Did, Text: "connection of us and the peer"},
			{At: time.Millisecond, Kind: conform.Sent, Text: "Request, 20 bytes", Bytes: request},
			{At: 2 * time.Millisecond, Kind: conform.Received, Text: "Reply, 20 bytes", Bytes: reply},
			{At: 2 * time.Millisecond, Kind: conform.Checked, Text: "the key"},
			{At: 3 * time.Millisecond, Kind: conform.Saw, Text: "the connection is closed"},
		},
	}
	right := wrong
	right.Case.ID, right.Verdict = "startup/req-waits", conform.Pass
	left := conform.Result{Case: conform.Case{ID: "fpdu/fin", Section: "RFC 5044 8"}, Verdict: conform.NotApplicable, Why: "unsafe"}
	return &conform.Report{Title: "Responder 192.0.2.1:7174", Results: []conform.Result{right, wrong, left},
		Peer: "192.0.2.1:7174", Version: "v1.2.3", Time: epoch}
}

// probed is a run of probe on a server of another protocol.
func probed() *probe.Report {
	return &probe.Report{Peer: "192.0.2.1:80", Network: "tcp", NotMPA: true, Questions: []*probe.Question{
		{Name: "revision 1", Sent: "MPA ID Req Frame C rev 1", Outcome: probe.Silent, Milliseconds: 3000},
		{Name: "revision 2", Sent: "MPA ID Req Frame C S rev 2", Outcome: probe.Foreign, Answer: "13 bytes: <html>", Milliseconds: 2},
	}}
}

// reports has a look at the pages of conform and probe: what failed comes first, with its ladder, and the rest unfolds.
func (w browser) reports(t *testing.T) {
	for name, r := range map[string]struct {
		write             reported
		failed, unfolding string
	}{
		"conform": {conformed().WriteHTML, "startup/req-whole", "1"},
		"probe":   {probed().Report().WriteHTML, "speaks MPA", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := w.open(t, r.write, "")
			b.want(`document.querySelector("#totals .badge.error").textContent`, "1 failed")
			b.want(`document.querySelector("nav a").textContent`, r.failed)
			b.want(`document.querySelectorAll("article .ladder svg .arrow").length > 1`, "true")
			b.want(`document.querySelectorAll("details details .ladder svg").length`, r.unfolding)
			b.want(`document.documentElement.scrollWidth <= innerWidth`, "true")
			b.want(`[...document.querySelectorAll("details")].forEach((d) => { d.open = true; })`, "undefined")
			b.do(chromedp.Evaluate[chromedp.Void](axe(t) + ";0"))
			b.judge("light")
			b.judgeOthers()
			b.want(`document.documentElement.scrollWidth <= innerWidth`, "true")
		})
	}
}
