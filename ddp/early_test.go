package ddp

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Against a map of the bytes: what is taken is not free until it is dropped, in any order.
//
// Proves D24.
func TestEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		var e *Early
		var placed [size]bool
		var taken []span
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(taken) > 0 && rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				s := taken[i]
				taken = slices.Delete(taken, i, i+1)
				if !e.Drop(s.from, s.len()) {
					t.Fatalf("%v is not there: %v", s, e.parts)
				}
				fill(placed[s.from:s.to], false)
				continue
			}
			from := rapid.Uint64Range(0, size).Draw(t, "from")
			s := span{from, rapid.Uint64Range(from, size).Draw(t, "to")}
			wantFree(t, e, s, placed[:])
			if e == nil {
				e = new(Early)
			}
			free := !slices.Contains(placed[s.from:s.to], true)
			if e.Take(s.from, s.len()) != free {
				t.Fatalf("%v is taken: %t; %v", s, !free, placed)
			}
			if free && s.len() > 0 {
				fill(placed[s.from:s.to], true)
				taken = append(taken, s)
			}
			if n := len(e.parts); n > len(taken) {
				t.Fatalf("%d parts are noted of %d", n, len(taken))
			}
		}
	})
}

func fill(b []bool, with bool) {
	for i := range b {
		b[i] = with
	}
}

// wantFree wants the parts that Free finds to be all that is not placed.
func wantFree(t *rapid.T, e *Early, s span, placed []bool) {
	got := slices.Clone(placed)
	for from := s.from; from < s.to; {
		a, b := e.Free(from, s.to)
		if a < from || b > s.to || slices.Contains(placed[a:b], true) {
			t.Fatalf("%d to %d are free, after %d in %v", a, b, from, placed)
		}
		if a == b {
			break
		}
		fill(got[a:b], true)
		from = b
	}
	if slices.Contains(got[s.from:s.to], false) {
		t.Fatalf("in %v not all that is free was found: %v", s, placed)
	}
}

// What was not taken is not dropped.
func TestEarlyDrop(t *testing.T) {
	var none *Early
	e := new(Early)
	e.Take(10, 10)
	for _, s := range []span{{9, 11}, {19, 21}, {0, 1}, {30, 31}} {
		if e.Drop(s.from, s.len()) || none.Drop(s.from, s.len()) {
			t.Errorf("%v is dropped", s)
		}
	}
	if !e.Drop(12, 0) || !none.Drop(12, 0) {
		t.Error("nothing is not dropped")
	}
	if !e.Drop(12, 3) || !slices.Equal(e.parts, spans{{10, 12}, {15, 20}}) {
		t.Error(e.parts)
	}
}

// What is placed ahead of its turn is noted in a bounded number of parts. One more has to wait, and one that touches
// another has not.
//
// Proves Z31.
func TestEarlyBound(t *testing.T) {
	var e Early
	for i := range uint64(maxIslands) {
		if !e.Take(3*i, 1) {
			t.Fatalf("part %d is refused", i)
		}
	}
	if e.Take(3*maxIslands, 1) {
		t.Error("one part too many is taken")
	}
	if !e.Take(1, 1) || !e.Drop(0, 2) || !e.Take(3*maxIslands, 1) {
		t.Error("a part that makes no more of them is refused, or one in place of another")
	}
}
