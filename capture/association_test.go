package capture

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// TestTSNs takes TSNs in any order, around the wrap: each is new once, and what is complete
// is what came.
func TestTSNs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		first := uint32(0xffffff00) + uint32(rapid.IntRange(0, 512).Draw(r, "first"))
		n := rapid.IntRange(1, 300).Draw(r, "n")
		order := rand.New(rand.NewPCG(1, uint64(n))).Perm(n)
		missing := rapid.IntRange(0, n-1).Draw(r, "missing")
		var s tsns
		s.setFirst(first)
		for _, i := range order {
			if i == missing {
				continue
			}
			if fresh, lost := s.enter(first + uint32(i)); !fresh || lost > 0 {
				r.Fatalf("%d: new %t, lost %d", i, fresh, lost)
			}
			if fresh, _ := s.enter(first + uint32(i)); fresh {
				r.Fatalf("%d is new twice", i)
			}
		}
		at := first + uint32(missing)
		if s.next != at || s.ahead != n-1-missing || missing > 0 && !s.complete(first, at-1) || s.complete(first, at) {
			r.Fatalf("next %d, want %d; %d ahead", s.next, at, s.ahead)
		}
		end := first + uint32(n)
		if lost := s.giveUp(end); lost != 1 || s.next != end || s.ahead != 0 || s.seen != nil ||
			s.complete(first, end-1) || at+1 != end && !s.complete(at+1, end-1) {
			r.Fatalf("%d given up: %+v", lost, s)
		}
	})
}

// TestTSNsFar has a TSN come that is too far ahead: what is before its window is given up.
func TestTSNsFar(t *testing.T) {
	var s tsns
	s.setFirst(10)
	s.enter(11)
	if fresh, lost := s.enter(10 + 1<<30); !fresh || lost != 1<<30-tsnWindow || s.ahead != 1 {
		t.Errorf("new %t, lost %d, %d ahead", fresh, lost, s.ahead)
	}
	if fresh, _ := s.enter(11); fresh {
		t.Error("one that was given up is new")
	}
}

// TestPieces puts a message together, and drops one whose middle is missing.
func TestPieces(t *testing.T) {
	var p pieces
	add := func(tsn uint32, flags byte, data string) {
		p.add(&Message{TSN: tsn, Data: []byte(data), Length: len(data), Chunks: 1}, flags)
	}
	add(3, chunk.FlagEnding, "c")
	add(1, chunk.FlagBeginning, "a")
	add(2, 0, "b")
	if p.join(1) != nil || p.join(2) != nil {
		t.Error("a message that is not whole")
	}
	if m := p.join(3); m == nil || string(m.Data) != "abc" || m.Length != 3 || m.Chunks != 3 || p.cost != 0 || p.any() {
		t.Errorf("%+v, %+v", m, p)
	}
	add(5, chunk.FlagBeginning, "a")
	add(7, chunk.FlagEnding, "c")
	for tsn := uint32(5); tsn < 8; tsn++ {
		if m := p.join(tsn); m != nil {
			t.Errorf("%d: %+v", tsn, m)
		}
	}
	if p.cost != 0 || p.any() {
		t.Errorf("%+v", p)
	}
}
