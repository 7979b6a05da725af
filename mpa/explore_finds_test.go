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
	flaw  string
	heard time.Time // when something arrived last
}

func (f *flawed) copy() machine { return &flawed{f.Initiator.Copy(), f.flaw, f.heard} }

func (f *flawed) Input(now time.Time, b []byte) (int, error) {
	f.heard = now
	n, err := f.Initiator.Input(now, b)
	if f.flaw == "takes a byte too many" && f.Initiator.Done() && n < len(b) {
		n++
	}
	return n, err
}

func (f *flawed) Deadline() time.Time {
	at := f.Initiator.Deadline()
	switch {
	case at.IsZero(), f.flaw == "waits for ever", f.flaw == "waits for ever once it has heard something" &&
		!f.heard.IsZero():
		return time.Time{}
	case f.flaw == "waits anew for each byte" && !f.heard.IsZero():
		return f.heard.Add(mpa.DefaultReplyTimeout)
	case f.flaw == "waits for too long":
		return at.Add(time.Second)
	}
	return at
}

func (f *flawed) HandleTimeout(now time.Time) error {
	if f.flaw == "waits for ever" || f.flaw == "forgets its deadline" || now.Before(f.Deadline()) {
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
		{of("flawed"), "takes a byte too many", "wants nothing and took 1 bytes"},
		{of("flawed"), "waits for ever", "the Initiator waits, and has no deadline"},
		{of("flawed"), "waits for ever once it has heard something", "the Initiator waits, and has no deadline"},
		{of("flawed"), "waits for too long", "the Initiator waits for 11s in all, and may for 10s"},
		{of("flawed"), "waits anew for each byte", "in all, and may for 10s"},
		{of("flawed"), "forgets its deadline", "a wait ended with"},
		{of("flawed"), "sends markers unasked", "the two ends disagree"},
		{of("flawed"), "leaves CRCs out", "the two ends disagree"},
		{of("flawed"), "lets the other end begin", `has ""`}, // both wait for the other's first FPDU,
	} {
		n := c.class.firstState(t)
		n.i.m = &flawed{Initiator: n.i.m.(*mpa.Initiator), flaw: c.flaw}
		s := search{class: &c.class, bytewise: strings.HasPrefix(c.flaw, "waits")}
		s.run(n)
		if found := strings.Join(s.wrong, "\n"); (found == "") != (c.report == "") ||
			!strings.Contains(found, c.report) {
			t.Errorf("%q: found %q", c.flaw, found)
		}
	}
}
