package capture

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// orders are those in which a number of pieces may come.
func orders(n int) map[string][]int {
	up, down, inward := make([]int, n), make([]int, n), make([]int, n)
	for i := range n {
		up[i], down[i], inward[i] = i, n-1-i, i/2
		if i%2 == 1 {
			inward[i] = n - 1 - i/2
		}
	}
	return map[string][]int{"up": up, "down": down, "inward": inward, "shuffled": rand.New(rand.NewPCG(1, 2)).Perm(n)}
}

// TestAhead puts in pieces in any order, and takes them out in theirs. One that is put in moves no more than a block,
// and there are no more blocks than the pieces need: the time for each piece does not depend on how many there are.
func TestAhead(t *testing.T) {
	const n = 20000
	for name, order := range orders(n) {
		var a ahead
		for k, i := range order {
			a.insert(piece{Span: Span{uint64(2 * i), 1}})
			if len(a.blocks) > 1+2*k/(blockPieces/2) {
				t.Fatalf("%s: %d blocks of %d pieces", name, len(a.blocks), k+1)
			}
		}
		if longest := slices.MaxFunc(a.blocks, func(x,
			y []piece) int {
			return len(x) - len(y)
		}); len(longest) > blockPieces {
			t.Errorf("%s: a block of %d pieces", name, len(longest))
		}
		for i := range n {
			at := a.search(uint64(2 * i))
			if p := a.at(at); p == nil || p.Offset != uint64(2*i) ||
				a.at(a.search(uint64(2*i+1))) != a.at(a.after(at)) {
				t.Fatalf("%s: piece %d is not found", name, i)
			}
		}
		for i := range n {
			first := a.first().Offset
			if p := a.pop(); p.Offset != uint64(2*i) || first != p.Offset {
				t.Fatalf("%s: %d is taken out, want %d", name, p.Offset, 2*i)
			}
		}
		if !a.empty() || a.at(a.search(0)) != nil {
			t.Errorf("%s: not empty", name)
		}
	}
}

// TestAheadTurns puts in and takes out by turns.
func TestAheadTurns(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var a ahead
	var want []uint64
	for range 20000 {
		if random.IntN(5) > 1 || a.empty() {
			if offset := random.Uint64N(1 << 40); !slices.Contains(want[max(0, len(want)-8):], offset) {
				a.insert(piece{Span: Span{offset, 1}})
				i, _ := slices.BinarySearch(want, offset)
				want = slices.Insert(want, i, offset)
			}
			continue
		}
		if p := a.pop(); p.Offset != want[0] {
			t.Fatalf("%d is taken out, want %d", p.Offset, want[0])
		}
		want = want[1:]
	}
}

// TestRecallWork counts the records that are looked at for segments that come again and again: there are no more of
// them than the capture is long.
func TestRecallWork(t *testing.T) {
	h := newHistory()
	latest := uint64(0)
	for i := range maxRecall {
		latest = h.add(&piece{Span: Span{uint64(2 * i), 1}, data: []byte{1}}, latest)
	}
	looked := 0
	for range 4000 {
		before := h.left
		m, _ := h.recall(latest, Span{1 << 40, 1}, []byte{1}, 1) // which no record has
		if looked += before - h.left; m != MatchUnknown {
			t.Fatal(m)
		}
		latest = h.add(&piece{Span: Span{1 << 41, 1}, data: []byte{1}}, latest)
	}
	if most := recallMost + 4000*recallEach; looked > most || looked < recallMost {
		t.Errorf("%d records were looked at, want at most %d, and at least %d", looked, most, recallMost)
	}
	for range maxRecall {
		latest = h.add(&piece{Span: Span{2, 1}, data: []byte{1}}, latest)
	}
	if m, _ := h.recall(latest, Span{2, 1}, []byte{2}, 1); m != MatchDiffers {
		t.Errorf("after a while: %v", m)
	}
}
