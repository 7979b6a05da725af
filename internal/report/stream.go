package report

import (
	"cmp"
	"encoding/json"
	"io"
)

// A Stream writes a report while the run goes on: each check when it has been made, and the rest at the end. What it
// writes is what a Report of the same checks writes, with [Document.Every] as text and with [Lines] as JSON.
type Stream struct {
	check func(*Check, any) error
	end   func(*Document, any) error
	err   error
}

// NewTextStream returns a Stream of text. verbose also has the details of what was right.
func NewTextStream(w io.Writer, verbose bool) *Stream {
	return &Stream{
		check: func(c *Check, _ any) error {
			return (&Document{Judged: []Check{*c}, Every: true}).WriteText(w, verbose)
		},
		end: func(d *Document, _ any) error { return d.WriteText(w, verbose) },
	}
}

// NewJSONStream returns a Stream of JSON, a line for each check and one for the end.
func NewJSONStream(w io.Writer) *Stream {
	enc := json.NewEncoder(w)
	return &Stream{
		check: func(_ *Check, data any) error { return enc.Encode(data) },
		end:   func(_ *Document, data any) error { return enc.Encode(data) },
	}
}

// Check writes a check, or for JSON the same as data. End returns the error, if there is one.
func (s *Stream) Check(c *Check, data any) { s.err = cmp.Or(s.err, s.check(c, data)) }

// End writes what follows the checks, and returns the first error.
func (s *Stream) End(d *Document, data any) error { return cmp.Or(s.err, s.end(d, data)) }
