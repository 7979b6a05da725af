package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// shuffledPair is a pair on an LLP that carries whole segments, in any order within a window, and
// some of them again and again.
func shuffledPair(t *rapid.T, r *rand.Rand) *pair {
	kinds := []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend}
	kind, peerToPeer := kinds[r.IntN(3)], r.IntN(2) == 0
	p := newPair(t, both(func(s *setup) {
		s.PeerToPeer, s.Negotiated.RTR = peerToPeer, kind
		s.MULPDU = []int{layout.MinMULPDU, 1000, testMULPDU, 8938}[r.IntN(4)]
		s.IRD, s.ORD = 4, 1+r.IntN(4)
		s.Params.Ahead = Ahead{Segments: 1 << 20, Bytes: 1 << 30}
	}), both(messages))
	p.prefix(r.IntN(2) == 0)
	for _, way := range []*pipe{&p.ab, &p.ba} {
		way.mail = &mail{window: []int{0, 3, 50, 1 << 20}[r.IntN(4)], pick: r.IntN}
		way.mail.again = func() bool { return r.IntN(5) == 0 }
		way.mail.early = func() bool { return r.IntN(2) == 0 }
	}
	p.first = func() bool { return r.IntN(2) == 0 }
	return p
}

// A promise is what has to be in place when a message is delivered: all that was sent before it.
type promise struct {
	written int // of the ranges that the peer has written
	sink    [2]int
}

// look holds new completions against what they promise.
func (s *side) look() {
	s.Helper()
	for ; s.looked < len(s.done); s.looked++ {
		if c := s.done[s.looked]; c.Op != OpReceive || c.Status != StatusSuccess {
			continue
		}
		p := s.promises[0]
		s.promises = s.promises[1:]
		for _, w := range s.peer.written[:p.written] {
			s.inPlace(s.window, s.wantWindow, w)
		}
		s.inPlace(s.sink, s.wantSink, p.sink)
	}
}

func (s *side) inPlace(got, want []byte, part [2]int) {
	s.Helper()
	if from, to := part[0], part[0]+part[1]; !bytes.Equal(got[from:to], want[from:to]) {
		s.Fatalf("delivered, and bytes %d to %d are not in place", from, to)
	}
}

// Any requests of both sides at once, while segments arrive in any order and more than once,
// against a model: memory, completions and their order. When a Send is delivered, every byte
// that was sent before it is in place.
//
// Proves D24, D26, D27, P31, P32, P40, P42, P43, A28, A35.
func TestAnyWorkAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 3))
		p := shuffledPair(t, r)
		a, b := newSide(p.a, seed), newSide(p.b, seed+1)
		a.peer, b.peer = b, a
		step := func() bool {
			moved := p.step()
			a.look()
			b.look()
			return moved
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			s := []*side{a, b}[r.IntN(2)]
			for !s.room() && step() {
			}
			if s.room() {
				s.post()
			}
			for range r.IntN(6) {
				step()
			}
		}
		for step() {
		}
		a.check()
		b.check()
		a.done, b.done = nil, nil
		p.closeBoth()
	})
}

// The segments of a connection, errors among them, in any order and more than once: what is sent,
// completed, told and counted is what comes of them in order, and so is the memory, but for what
// nobody was told of.
//
// Proves D26, D27, P31, P34, P39, P49.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newScene(t, messages)
		p := a.draw(t)
		order := make([]int, len(p.ulpdus)+1)
		for i := range order {
			order[i] = i
		}
		a.play(p, order)
		b := newScene(t, messages)
		again := rapid.SliceOfN(rapid.IntRange(0, len(p.ulpdus)), 0, 10).Draw(t, "again")
		order = rapid.Permutation(append(order, again...)).Draw(t, "order")
		b.play(p, order)
		inOrder, any := a.verdict(), b.verdict()
		if inOrder.State != Idle { // not all had their turn
			a.forgive(int(inOrder.Stats.RecvFPDUs), p, inOrder.Memory, any.Memory)
		}
		if diff := cmp.Diff(inOrder, any); diff != "" {
			t.Fatalf("in order and in order %v:\n%s", order, diff)
		}
	})
}

// Segments of any content with any numbers, placed and delivered as the input says: no panic,
// nothing outside of the regions changes or is sent, and what is held is bounded.
//
// Proves Z12, Z31, D42.
func FuzzSegment(f *testing.F) {
	for _, s := range fuzzSeeds() {
		for mode := range byte(16) {
			f.Add(mode, s)
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, data []byte) {
		s := newSetup(mpa.RoleResponder)
		messages(s)
		s.Params.Ahead = Ahead{Segments: 5, Bytes: 200, Again: mode&2 != 0}
		s.PeerToPeer, s.Negotiated.RTR = mode&8 != 0, mpa.RTRRead|mpa.RTRSend
		x := newSecretive(t, s)
		for i := uint64(0); len(data) > 1 && x.Machine.State() == RTS; i++ {
			n := min(1+int(data[0]&0x7f), len(data))
			ulpdu, at := bytes.Clone(data[1:n]), i
			if data[0]&0x80 != 0 && n > 1 { // its last byte says how far it is from its place
				at, ulpdu = i+uint64(data[n-1]%16)-8, ulpdu[:n-2]
			}
			data = data[n:]
			x.aim(ulpdu)
			x.surprise(at, ulpdu)
		}
		x.fin()
		x.check()
	})
}

// surprise has something happen at a number.
func (f *secretive) surprise(at uint64, ulpdu []byte) {
	switch {
	case len(ulpdu) > 0:
		f.host.segment(at, ulpdu)
	case at%3 == 0:
		f.Machine.Ended(f.clock, at)
	case at%3 == 1:
		f.Machine.Broken(f.clock, at, &mpa.Error{Code: mpa.CodeCRC})
	}
	f.collectOutputs()
	f.check()
	if n, held := f.Machine.ahead.segments(), f.Machine.HeldAhead(); n > 5 || held > 200 {
		f.Fatalf("%d segments and %d bytes are held", n, held)
	}
}
