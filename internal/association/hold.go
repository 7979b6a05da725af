package association

import "github.com/goiwarp/iwarp"

// A Holder is a Carrier that can hold its peer back while something is missing: what is new is not taken then, and what
// was sent before is.
type Holder interface {
	Hold(on bool)
	HoldFrom() int // bytes held, from which on Hold is to be called
}

// maxAhead bounds the segments that have come ahead of a missing one: no carrier takes messages that are farther from
// it.
const maxAhead = 4096

// Bounds says what a peer that does its part may have come ahead of order.
func (s *Session) Bounds() iwarp.SegmentBounds {
	return iwarp.SegmentBounds{First: 1, Segments: maxAhead, Bytes: s.a.carrier.Ahead()}
}

// Held says how many bytes the QP holds of what Recv has brought, as others are missing.
func (s *Session) Held(n int) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if !s.over() {
		s.setHeld(n)
		s.a.applyBackpressure()
	}
}

func (s *Session) setHeld(n int) {
	s.a.held += n - s.held
	s.held = n
}

// applyBackpressure holds the peer back while too much is held.
func (a *Association) applyBackpressure() {
	if a.holder == nil {
		return
	}
	if on := a.held+a.m.Early() >= a.holder.HoldFrom(); on != a.holding {
		a.holding = on
		a.holder.Hold(on)
	}
}
