package engine

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// endings are all that a consumer, a bad request or the network can do to a
// connection, at any time.
var endings = []struct {
	name string
	do   func(p *pair, s *side)
}{
	{"close", func(_ *pair, s *side) { s.closeOrderly() }},
	{"half close", func(p *pair, s *side) { s.Machine.BeginHalfClose(p.clock); s.collectOutputs() }},
	{"Modify to Closing", func(p *pair, s *side) { s.ask(p, Closing) }},
	{"Modify to Terminate", func(p *pair, s *side) { s.ask(p, Terminate) }},
	{"Modify to Error", func(p *pair, s *side) { s.ask(p, Error) }},
	{"a Send from nowhere", func(_ *pair, s *side) { s.try(work(0, OpSend, SGE{Length: 4})) }},
	{"a Write to nowhere", func(_ *pair, s *side) { s.try(SendWork{Op: OpWrite, Inline: []byte("abc")}) }},
	{"a Read from nowhere", func(_ *pair, s *side) { s.try(work(0, OpRead, SGE{Region: s.rk, Offset: 0, Length: 4})) }},
	{"a Send without a receive", func(_ *pair, s *side) { s.try(work(0, OpSend)) }},
	{"revoked source", func(_ *pair, s *side) { s.table.Revoke(s.rs) }},
	{"revoked window", func(_ *pair, s *side) { s.table.Revoke(s.rw) }},
	{"revoked sink", func(_ *pair, s *side) { s.table.Revoke(s.rk) }},
	{"reset", func(p *pair, _ *side) { p.cutOff() }},
	{"silence", func(p *pair, _ *side) { p.ab.lost, p.ba.lost = true, true }},
}

// ask is Modify; it may be refused, as the connection may have ended already.
func (s *side) ask(p *pair, to State) {
	_ = s.Machine.Modify(p.clock, to)
	s.collectOutputs()
}

// try posts a request that may be refused, and counts it if it is not.
func (s *side) try(w SendWork) {
	s.nextID++
	w.ID = s.nextID
	if s.Machine.PostSend(&w) == nil {
		s.wantSend = append(s.wantSend, Completion{ID: w.ID, Op: w.Op})
	}
	s.collectOutputs()
}

// pass lets time pass for both, as long as anything waits for it.
func (p *pair) pass() {
	for range 20 {
		p.clock = p.clock.Add(closeTime)
		for _, h := range []*host{p.a, p.b} {
			if at := h.Machine.Deadline(); !at.IsZero() && !p.clock.Before(at) {
				h.Machine.HandleTimeout(p.clock)
				h.collectOutputs()
			}
		}
		p.run()
	}
}

// ended expects every request to have completed once, in order: a successful
// unsignaled one in silence. At most one of each queue has an error of its own.
func (s *side) ended() {
	s.Helper()
	var sends, receives []Completion
	bad := 0
	for _, c := range s.done {
		if c.Op == OpReceive {
			receives = append(receives, c)
		} else {
			sends = append(sends, c)
		}
		if c.Status != StatusSuccess && c.Status != StatusFlushed {
			bad++
		}
	}
	s.inOrder("Receive", s.wantRecv, receives)
	s.inOrder("Send", s.wantSend, withoutUnsignaled(sends, s.wantSend))
	if bad > 2 || s.Machine.sq.Len() > 0 || s.Machine.InFlight() {
		s.Fatalf("%d errors, %d requests left, in flight: %t", bad, s.Machine.sq.Len(), s.Machine.InFlight())
	}
}

// withoutUnsignaled drops the errors of unsignaled requests, which the model does not list.
func withoutUnsignaled(got, want []Completion) (rest []Completion) {
	known := map[uint64]bool{}
	for _, c := range want {
		known[c.ID] = true
	}
	for _, c := range got {
		if known[c.ID] {
			rest = append(rest, c)
		}
	}
	return rest
}

func (s *side) inOrder(queue string, want, got []Completion) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s Queue: %d completions, want %d; %v, %v",
			queue, len(got), len(want), s.Machine.State(), s.Machine.Cause())
	}
	failed := false
	for i, c := range got {
		if c.ID != want[i].ID || c.Op != want[i].Op {
			s.Fatalf("%s Queue: completion %d is of %d, want %d", queue, i, c.ID, want[i].ID)
		}
		// A local invalidation may be done before what it waited for is flushed.
		if failed && c.Status == StatusSuccess && c.Op != OpLocalInvalidate {
			s.Fatalf("%s Queue: %d succeeds after a failure", queue, c.ID)
		}
		failed = failed || c.Status != StatusSuccess
	}
}

// Any work of both sides, and then one or two things that end the connection, at
// any byte of it: both sides come to rest in Idle or Error within the time that
// a close may take, and all work has completed, once and in order.
//
// Proves D03, D07, D35, P38, S05.
func TestAnyEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 3))
		p := randomPair(t, r)
		a, b := newSide(p.a, seed), newSide(p.b, seed+1)
		a.peer, b.peer = b, a
		for range r.IntN(12) {
			if s := []*side{a, b}[r.IntN(2)]; s.room() {
				s.post()
			}
			for range r.IntN(8) {
				p.step()
			}
		}
		for range 1 + r.IntN(2) {
			e := endings[rapid.IntRange(0, len(endings)-1).Draw(t, "ending")]
			e.do(p, []*side{a, b}[r.IntN(2)])
			for range r.IntN(8) {
				p.step()
			}
		}
		p.run()
		a.closeOrderly()
		b.closeOrderly()
		p.run()
		p.pass()
		for _, s := range []*side{a, b} {
			if s.Machine.State() == RTS {
				t.Fatalf("stands still: %d requests, %d and %d Reads, in flight: %t",
					s.Machine.sq.Len(), s.Machine.orq.Len(), s.Machine.irrq.Len(), s.Machine.InFlight())
			}
			if st := s.Machine.State(); st != Idle && st != Error {
				t.Fatalf("in state %v, cause: %v", st, s.Machine.Cause())
			}
			s.flushIdle(p)
			s.ended()
		}
	})
}

// flushIdle ends what was posted in Idle, after a close.
func (s *side) flushIdle(p *pair) {
	if s.Machine.State() == Idle {
		s.ask(p, Error)
	}
}
