// Package report writes what a tool has found: as text for people, as JSON for
// programs, as JUnit for CI systems, as Markdown for documents, and as a page of HTML.
//
// A tool says what it has found by a Document, which is data. How that looks is
// decided here, and nowhere else.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Report is what a run of a tool came to.
type Report interface {
	// WriteText writes the report for people to read. verbose also has the details
	// of what was right.
	WriteText(w io.Writer, verbose bool) error
	// WriteJSON writes JSON, whose keys the tool documents.
	WriteJSON(w io.Writer) error
	// WriteJUnit writes one suite, with a case for each check.
	WriteJUnit(w io.Writer) error
	// WriteMarkdown writes a chapter, with a table of the checks.
	WriteMarkdown(w io.Writer) error
	// WriteHTML writes a page: what failed with its dialogues as ladders, and all checks.
	WriteHTML(w io.Writer) error
}

// A Stamp says in JSON what a report is of: the version of iwarp, and when the run began, in UTC.
type Stamp struct {
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time,omitzero"`
}

// StampOf is the Stamp of a run.
func StampOf(version string, began time.Time) Stamp {
	return Stamp{version, began.UTC().Truncate(time.Second)}
}

// Milliseconds is a duration as JSON has it, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// OfMilliseconds is the duration that JSON has.
func OfMilliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Of returns the Report of a tool: a document, and the same as data for JSON, which are one object or [Lines].
func Of(d *Document, data any) *Documented { return &Documented{d, data} }

// Lines are data that JSON has as an object on a line each, as a [Stream] writes them.
type Lines []any

// Documented is the Report that [Of] returns.
type Documented struct {
	*Document
	data any
}

// WriteJSON writes the data as one indented object, or as lines.
func (d *Documented) WriteJSON(w io.Writer) error {
	lines, ok := d.data.(Lines)
	if !ok {
		return WriteJSON(w, d.data)
	}
	enc := json.NewEncoder(w)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes data as one indented object.
func WriteJSON(w io.Writer, data any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(data)
}

// A Document is a report in parts.
type Document struct {
	Tool  string // the command
	Title string // what was looked at, in a line
	// Peer, Version and Began are for the page: the address that was looked at, the version of iwarp, and when.
	Peer, Version string
	Began         time.Time
	Sections      []Section
	// Stopped is why the run did not happen, or is not complete; empty if it is. Every form says so.
	Stopped string
	// Interrupted: Stopped is an interrupt, which is no error.
	Interrupted bool
	// Notes tell of what all checks are to be read with. Every form has them, the last.
	Notes []Line
	// Judged has the checks that no section has. They come first.
	Judged []Check
	// Every: the text has a line for each of Judged. Otherwise it has those that failed.
	Every bool
	// Took is the time of all checks together, where some were made at the same time. If zero, the sum of theirs.
	Took time.Duration
}

// A Section is part of a report. Each of its fields may be empty.
type Section struct {
	Head  string
	Lines []Line
	Table [][]string // the first row and the first column are headings
	Columns
	Checks []Check // what was judged here
}

// Columns are rows of cells that stand below each other, without rules.
type Columns struct {
	Rows [][]string
	// Figures: the cells stand on the right, as figures do.
	Figures bool
}

// A Line is a text with a label.
type Line struct{ Label, Text string }

// A Check is one thing that was judged.
type Check struct {
	Group, Name  string
	Requirements string // the project's IDs
	Document     string // where it says so
	Text         string // a sentence about it
	Status       Status
	// Quiet: the text has it with verbose only.
	Quiet   bool
	Verdict string // a word for the status
	Why     string // the reason of what was skipped
	// Expected and Got tell of a failure.
	Expected, Got string
	// Dialogue and Details are printed of what failed. A line without a label stays as it is.
	Dialogue []Step
	Details  []Line
	Took     time.Duration
}

// Status is what a check came to, as CI systems know it.
type Status uint8

// The statuses.
const (
	Passed Status = iota
	Failed
	Skipped
)

// parts returns what is printed after the checks that no section has.
func (d *Document) parts() (all []Section) {
	if d.Stopped != "" {
		all = append(all, Section{Head: d.stopped()})
	}
	return append(append(all, d.Sections...), Section{Lines: d.Notes})
}

func (d *Document) stopped() string { return "stopped: " + d.Stopped }

// checks returns all checks, in order.
func (d *Document) checks() []Check {
	all := append([]Check(nil), d.Judged...)
	for _, s := range d.Sections {
		all = append(all, s.Checks...)
	}
	return all
}

// ID is the name of a check within the tool.
func (c *Check) ID() string {
	if c.Group == "" {
		return c.Name
	}
	return c.Group + "/" + c.Name
}

// took is the time of all checks.
func (d *Document) took() time.Duration {
	took := d.Took
	if took == 0 {
		for _, c := range d.checks() {
			took += c.Took
		}
	}
	return took
}

// About is a sentence about the check, with the document that says so.
func (c *Check) About() string {
	if c.Text == "" {
		return c.Document
	}
	return fmt.Sprintf("%s (%s)", c.Text, c.Document)
}
