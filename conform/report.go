package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
)

// A Report is what a run of the suite came to.
type Report struct {
	Title   string // what was tested, and how
	Results []Result
	Stopped string // why the run is not complete; empty if it is
	// PeerStopped and Away are those of the [Summary].
	PeerStopped bool
	Away        []Absence
	// Interrupted is that of the [Summary]: then Stopped says so, and is no error in JUnit.
	Interrupted bool
	// RoundTrip is the path's, if it is longer than the quiet time: see [Summary].
	RoundTrip time.Duration
	// Peer, Version and Time are those of the [Summary], for the page.
	Peer, Version string
	Time          time.Time
}

// Summary counts the results.
func (p *Report) Summary() Summary {
	sum := Summary{Stopped: p.Stopped, Interrupted: p.Interrupted, RoundTrip: p.RoundTrip,
		PeerStopped: p.PeerStopped, Away: p.Away, Peer: p.Peer, Version: p.Version, Time: p.Time}
	for i := range p.Results {
		sum.Add(p.Results[i].Verdict)
	}
	return sum
}

// WriteText writes a line for each result, and the counts. With verbose it writes the
// dialogue of every case, and otherwise that of those that failed.
func (p *Report) WriteText(w io.Writer, verbose bool) error { return p.report().WriteText(w, verbose) }

// WriteJSON writes a line for each result, and one with the Summary.
func (p *Report) WriteJSON(w io.Writer) error { return p.report().WriteJSON(w) }

// WriteJUnit writes one JUnit suite. Cases that are not applicable or inconclusive
// count as skipped, and a run that is not complete has an error, unless it was interrupted.
func (p *Report) WriteJUnit(w io.Writer) error { return p.report().WriteJUnit(w) }

// WriteMarkdown writes a table of the results under the title, and before it how many
// there are of each verdict.
func (p *Report) WriteMarkdown(w io.Writer) error { return p.report().WriteMarkdown(w) }

// WriteHTML writes a page: what failed with its dialogues as ladders, and all results.
func (p *Report) WriteHTML(w io.Writer) error { return p.report().WriteHTML(w) }

// report returns it as those of all tools are.
func (p *Report) report() *report.Documented {
	sum := p.Summary()
	d, data := sum.document(), make(report.Lines, 0, len(p.Results)+1)
	d.Tool, d.Title, d.Every = "conform", p.Title, true
	for i := range p.Results {
		d.Judged = append(d.Judged, *p.Results[i].check())
		data = append(data, &p.Results[i])
	}
	return report.Of(d, append(data, &sum))
}

// A Printer writes results while a run goes on, in the form that a [Report] has.
type Printer struct{ to *report.Stream }

// NewPrinter returns a Printer of text. With verbose it prints the dialogue of every case,
// and otherwise that of those that failed.
func NewPrinter(w io.Writer, verbose bool) *Printer {
	return &Printer{report.NewTextStream(w, verbose)}
}

// NewJSONPrinter returns a Printer of JSON, a line for each result and for the counts.
func NewJSONPrinter(w io.Writer) *Printer { return &Printer{report.NewJSONStream(w)} }

// Result prints one result. Summary returns the first error, if there is one.
func (p *Printer) Result(r *Result) { p.to.Check(r.check(), r) }

// Summary prints the counts.
func (p *Printer) Summary(t *Summary) error { return p.to.End(t.document(), t) }

// check returns a result as all reports have it.
func (r *Result) check() *report.Check {
	group, name, _ := strings.Cut(r.Case.ID, "/")
	c := &report.Check{
		Group: group, Name: name, Requirements: strings.Join(r.Case.Requirements, " "),
		Document: r.Case.Section, Text: r.Case.Text,
		Verdict: r.Verdict.String(), Status: report.Skipped, Why: r.Why, Expected: r.Expected, Got: r.Got, Took: r.Took,
		Quiet: r.Verdict == NotAsked,
	}
	for _, e := range r.Dialogue {
		c.Dialogue = append(c.Dialogue, e.step())
	}
	switch r.Verdict {
	case Pass:
		c.Status = report.Passed
	case Fail:
		c.Status = report.Failed
		c.Details = append(c.Details, report.Line{Label: "expected:", Text: r.Expected},
			report.Line{Label: "got:", Text: r.Got})
	}
	return c
}

func (t *Summary) document() *report.Document {
	d := &report.Document{Sections: []report.Section{{Head: t.String()}}, Stopped: t.Stopped,
		Interrupted: t.Interrupted, Peer: t.Peer, Version: t.Version, Began: t.Time}
	if t.RoundTrip > 0 {
		d.Notes = []report.Line{{Label: "path:", Text: fmt.Sprintf(
			"its round trip of %v is longer than the quiet time (--quiet): cases watched for both together",
			t.RoundTrip.Round(time.Millisecond))}}
	}
	for _, a := range t.Away {
		d.Notes = append(d.Notes, report.Line{Label: "away:",
			Text: fmt.Sprintf("the peer did not answer at %s, and was back after %v: what was in doubt was run again",
				a.Case, a.Took.Round(time.Millisecond))})
	}
	return d
}

// MarshalJSON returns passed, failed, not_applicable and inconclusive, and not_asked, stopped, peer_stopped,
// interrupted, not_mpa, away, peer, version, time and round_trip_ms where they are set.
func (t Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(summaryJSON{counts(t), report.Milliseconds(t.RoundTrip)})
}

type counts Summary

// summaryJSON is the form of a Summary in JSON.
type summaryJSON struct {
	counts
	RoundTrip float64 `json:"round_trip_ms,omitempty"`
}

// String returns, for instance, "120 passed, 0 failed, 10 not applicable, 0 inconclusive", and how many were not asked,
// if some were not.
func (t *Summary) String() string {
	s := fmt.Sprintf("%d passed, %d failed, %d not applicable, %d inconclusive",
		t.Passed, t.Failed, t.NotApplicable, t.Inconclusive)
	if t.NotAsked > 0 {
		s += fmt.Sprintf(", %d not asked", t.NotAsked)
	}
	return s
}

// resultJSON is the form of a Result in JSON.
type resultJSON struct {
	ID           string   `json:"id"`
	Requirements []string `json:"requirements"`
	Section      string   `json:"section"`
	Role         string   `json:"role"` // the peer's
	Text         string   `json:"text"`
	Verdict      Verdict  `json:"verdict"`
	Why          string   `json:"why,omitempty"`
	Expected     string   `json:"expected,omitempty"`
	Got          string   `json:"got,omitempty"`
	Took         float64  `json:"ms"`
	Dialogue     []Entry  `json:"dialogue"`
}

// MarshalJSON returns an object with id, requirements, section, role, text, verdict,
// why, expected, got, ms and dialogue.
func (r *Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{
		r.Case.ID, r.Case.Requirements, r.Case.Section, strings.ToLower(r.Case.Role.String()), r.Case.Text,
		r.Verdict, r.Why, r.Expected, r.Got, report.Milliseconds(r.Took), append([]Entry{}, r.Dialogue...),
	})
}
