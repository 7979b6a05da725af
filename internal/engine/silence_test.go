package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// waitsFor says what of the peer's a QP waits for, by what was asked of it and has arrived, and "" if its
// consumer lets it wait, as in RTS for work.
func (h *host) waitsFor() string {
	q := h.Machine
	switch {
	case q.state == Terminate:
		return "the end of a connection that has failed"
	case q.state == Closing:
		return "the end of a connection that is closing"
	case q.state == RTS && q.closing():
		return "the end of its close"
	case q.state == RTS && q.peerClosed && q.idle() && !q.cfg.HalfClose && !q.awaiting():
		return "the time that our half stays open"
	}
	return ""
}

// wantDeadlines expects each host that waits for its peer to have a deadline, within the longest of its times.
func (p *pair) wantDeadlines() {
	p.Helper()
	for name, h := range map[string]*host{"Initiator": p.a, "Responder": p.b} {
		what, at := h.waitsFor(), h.Machine.Deadline()
		if what != "" && (at.IsZero() || at.After(p.clock.Add(closeTime))) {
			p.Fatalf("the %s, in %v, waits for %s, and its deadline is %v (it is %v)",
				name, h.Machine.State(), what, at, p.clock)
		}
	}
}

// wake lets time pass until a host's deadline, as long as it has one and nothing else happens, and returns
// how long that took.
func (p *pair) wake(h *host) time.Duration {
	p.Helper()
	began := p.clock
	for range 100 {
		at := h.Machine.Deadline()
		if at.IsZero() {
			return p.clock.Sub(began)
		}
		if p.clock.Before(at) {
			p.clock = at
		}
		h.Machine.HandleTimeout(p.clock)
		h.collectOutputs()
		p.run()
		p.wantDeadlines()
	}
	p.Fatalf("in %v after %v: there is always another deadline", h.Machine.State(), p.clock.Sub(began))
	return 0
}

// Whoever waits for the peer has a deadline. One end or both are asked for an end of the connection, or get
// something that ends it, and the peer falls silent at any byte before or after that: in the time that an
// end may take each QP of which an end was asked is over.
func TestWhoeverWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 5))
		p := randomPair(t, r)
		for _, h := range []*host{p.a, p.b} {
			h.Machine.cfg.Linger = time.Duration(r.IntN(2)) * time.Second
			h.Machine.cfg.CloseLimit = time.Duration(r.IntN(2)) * 3 * closeTime
			h.Machine.TellsEnd = r.IntN(2) == 0
		}
		sides := [2]*side{newSide(p.a, seed), newSide(p.b, seed+1)}
		sides[0].peer, sides[1].peer = sides[1], sides[0]
		steps := func() {
			for range r.IntN(8) {
				p.step()
				p.wantDeadlines()
			}
		}
		for range r.IntN(8) {
			if s := sides[r.IntN(2)]; s.room() {
				s.post()
			}
			steps()
		}
		silent := r.IntN(3) // 2: both ways
		fall := func() { p.ab.lost, p.ba.lost = p.ab.lost || silent != 1, p.ba.lost || silent != 0 }
		if r.IntN(2) == 0 {
			fall()
		}
		asked := sides[r.IntN(2)]
		e := endings[r.IntN(5)] // what a consumer asks for
		e.do(p, asked)
		steps()
		fall()
		p.run()
		asked.closeOrderly()
		p.wantDeadlines()
		for _, s := range sides {
			if took := p.wake(s.host); took > 6*closeTime {
				t.Fatalf("%s: an end took %v", e.name, took)
			}
			if what := s.waitsFor(); what != "" {
				t.Fatalf("%s: in %v, and waits for %s for ever", e.name, s.Machine.State(), what)
			}
		}
		if st := asked.Machine.State(); st != Idle && st != Error {
			t.Fatalf("%s: in %v, cause: %v", e.name, st, asked.Machine.Cause())
		}
	})
}
