package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Printer writes results as text, a line for each case.
type Printer struct {
	w       io.Writer
	verbose bool
}

// NewPrinter returns a Printer. With verbose it prints the dialogue of every case,
// and otherwise that of those that failed.
func NewPrinter(w io.Writer, verbose bool) *Printer { return &Printer{w, verbose} }

// Result prints one result.
func (p *Printer) Result(r *Result) {
	fmt.Fprintf(p.w, "%-14s %-34s %s", r.Verdict, r.Case.ID, strings.Join(r.Case.Requirements, " "))
	if r.Why != "" {
		fmt.Fprintf(p.w, "  (%s)", r.Why)
	}
	fmt.Fprintln(p.w)
	if r.Verdict == Fail || p.verbose {
		p.dialogue(r)
	}
}

func (p *Printer) dialogue(r *Result) {
	fmt.Fprintf(p.w, "    %s (%s)\n", r.Case.Text, r.Case.Section)
	for _, e := range r.Dialogue {
		fmt.Fprintf(p.w, "    %s\n", strings.ReplaceAll(e.String(), "\n", "\n    "))
	}
	if r.Verdict == Fail {
		fmt.Fprintf(p.w, "    expected: %s\n    got:      %s\n", r.Expected, r.Got)
	}
}

// Summary prints the counts.
func (p *Printer) Summary(t *Summary) {
	if t.Stopped != "" {
		fmt.Fprintf(p.w, "stopped: %s\n", t.Stopped)
	}
	fmt.Fprintln(p.w, t)
}

// String returns, for instance, "120 passed, 0 failed, 10 not applicable, 0 inconclusive".
func (t *Summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d not applicable, %d inconclusive",
		t.Passed, t.Failed, t.NotApplicable, t.Inconclusive)
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
	Took         float64  `json:"took_ms"`
	Dialogue     []Entry  `json:"dialogue"`
}

// MarshalJSON returns an object with id, requirements, section, role, text, verdict,
// why, expected, got, took_ms and dialogue.
func (r *Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{
		r.Case.ID, r.Case.Requirements, r.Case.Section, strings.ToLower(r.Case.Role.String()), r.Case.Text,
		r.Verdict, r.Why, r.Expected, r.Got, milliseconds(r.Took), append([]Entry{}, r.Dialogue...),
	})
}

// WriteJSON writes a result as one line.
func WriteJSON(w io.Writer, r *Result) error { return json.NewEncoder(w).Encode(r) }

// List prints cases, three lines each: the ID with what it takes to be run,
// requirements and section, and the sentence; and why a case is unsafe, if it is.
func List(w io.Writer, cases []Case) {
	for _, c := range cases {
		fmt.Fprintf(w, "%s%s\n    %s  %s\n    %s\n", c.ID, traits(&c), strings.Join(c.Requirements, " "), c.Section, c.Text)
		if c.Unsafe != "" {
			fmt.Fprintf(w, "    unsafe: %s\n", c.Unsafe)
		}
	}
}

// traits returns what it takes to run a case, in brackets.
func traits(c *Case) string {
	t := []string{"peer " + strings.ToLower(c.Role.String())}
	for _, d := range c.Dialects {
		short, _ := d.MarshalText()
		t = append(t, string(short))
	}
	if c.App != AppNone {
		t = append(t, "application "+c.App.String())
	}
	if c.Slow {
		t = append(t, "slow")
	}
	if c.Unsafe != "" {
		t = append(t, "unsafe")
	}
	return "  (" + strings.Join(t, ", ") + ")"
}

// seconds of a duration, for JUnit.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
