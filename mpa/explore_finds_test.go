package mpa_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// flawed is an Initiator with a mistake that the search has to find.
type flawed struct {
	*mpa.Initiator
	flaw string
}

func (f *flawed) copy() machine { return &flawed{f.Initiator.Copy(), f.flaw} }

func (f *flawed) Input(now time.Time, b []byte) (int, error) {
	n, err := f.Initiator.Input(now, b)
	if f.flaw == "takes an octet too many" && f.Initiator.Done() && n < len(b) {
		n++
	}
	return n, err
}

func (f *flawed) Deadline() time.Time {
	if f.flaw == "waits for ever" {
		return time.Time{}
	}
	return f.Initiator.Deadline()
}

func (f *flawed) HandleTimeout(now time.Time) error {
	if f.flaw == "waits for ever" || f.flaw == "forgets its deadline" {
		return nil
	}
	return f.Initiator.HandleTimeout(now)
}

func (f *flawed) Negotiated() mpa.Negotiated {
	n := f.Initiator.Negotiated()
	switch f.flaw {
	case "sends markers unasked":
		n.MarkersSend = true
	case "leaves CRCs out":
		n.CRC = false
	case "lets the other end begin":
		n.SendFirst = false
	}
	return n
}

// TestExploreFinds has the search find what an Initiator does wrong.
func TestExploreFinds(t *testing.T) {
	for _, c := range []struct {
		class        class
		flaw, report string
	}{
		{of("flawed"), "", ""},
		{of("flawed"), "takes an octet too many", "wants nothing and took 1 octets"},
		{of("flawed", deciding(ignores)), "waits for ever", "the Initiator waits for ever"},
		{of("flawed"), "forgets its deadline", "a wait ended with"},
		{of("flawed"), "sends markers unasked", "the two ends disagree"},
		{of("flawed"), "leaves CRCs out", "the two ends disagree"},
		{of("flawed"), "lets the other end begin", `has ""`}, // both wait for the other's first FPDU,
	} {
		n := c.class.begin(t)
		n.i.m = &flawed{n.i.m.(*mpa.Initiator), c.flaw}
		s := search{class: &c.class}
		s.run(n)
		if found := strings.Join(s.wrong, "\n"); (found == "") != (c.report == "") || !strings.Contains(found, c.report) {
			t.Errorf("%q: found %q", c.flaw, found)
		}
	}
}
