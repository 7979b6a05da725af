package rdmap

import (
	"testing"

	"github.com/goiwarp/iwarp/ddp"
)

// Response segments that come ahead may be placed into the sink of the one Read that they are
// for, unless one of their bytes is placed already. They are taken in their turn as in order.
//
// Proves P28.
func TestORQAhead(t *testing.T) {
	q := NewORQ(5)
	ahead := func(why string, stag uint32, to uint64, n int, id uint64) {
		t.Helper()
		if r, ok := q.TakeAhead(response(stag, to, n, false)); ok != (id > 0) || ok && r.ID != id {
			t.Errorf("%s: taken for Read %d: %t, want %d", why, r.ID, ok, id)
		}
	}
	ahead("no Read", 7, 1000, 1, 0)
	q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
	q.Push(Read{SinkSTag: 7, SinkTO: 1100, Size: 100, ID: 2})
	q.Push(Read{SinkSTag: 8, SinkTO: 1<<64 - 10, Size: 10, ID: 3})
	q.Push(Read{SinkSTag: 9, SinkTO: 0, Size: 10, ID: 4})
	q.Push(Read{SinkSTag: 9, SinkTO: 5, Size: 10, ID: 5})
	advance(t, &q, response(7, 1000, 50, false), 1, false)
	ahead("another STag, where a sink is free", 6, 1100, 1, 0)
	ahead("what is placed", 7, 1049, 2, 0)
	ahead("into the first, from before it", 7, 999, 2, 0)
	ahead("what comes next", 7, 1050, 10, 1)
	ahead("the rest of the first", 7, 1060, 40, 1)
	ahead("again", 7, 1099, 1, 0)
	ahead("across two Reads", 7, 1099, 2, 0)
	ahead("another Read", 7, 1100, 100, 2)
	ahead("beyond all", 7, 1200, 1, 0)
	ahead("before all", 7, 999, 1, 0)
	ahead("another STag", 6, 1100, 1, 0)
	ahead("at the end of the space", 8, 1<<64-5, 5, 3)
	ahead("beyond the end of the space", 8, 1<<64-6, 7, 0)
	ahead("beyond the end of its Read", 9, 12, 4, 0)
	ahead("of one Read where another begins", 9, 3, 3, 0)
	ahead("of one Read in front of the other", 9, 0, 5, 4)
	advance(t, &q, response(7, 1050, 50, true), 1, true)
	advance(t, &q, response(7, 1100, 100, true), 2, true)
}

// What comes for a Read while an Atomic Operation is outstanding, which has no sink, is placed all the same.
func TestORQAheadOfAtomic(t *testing.T) {
	q := NewORQ(2)
	q.Push(Read{Response: OpAtomicResponse, Request: 7, ID: 1})
	q.Push(Read{SinkSTag: 0, SinkTO: 0, Size: 100, ID: 2})
	if r, ok := q.TakeAhead(response(0, 0, 10, false)); !ok || r.ID != 2 {
		t.Errorf("taken for %d: %t", r.ID, ok)
	}
	if r, ok := q.TakeAhead(response(7, 0, 10, false)); ok {
		t.Errorf("another STag: taken for %d", r.ID)
	}
}

// TestORQDropAhead: what is dropped, as it was not placed after all, may be taken again. What else was taken stays:
// that of another Read into the same region, and that at the same offsets of another region.
func TestORQDropAhead(t *testing.T) {
	q := NewORQ(3)
	q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
	q.Push(Read{SinkSTag: 7, SinkTO: 1100, Size: 100, ID: 2})
	q.Push(Read{SinkSTag: 8, SinkTO: 1000, Size: 100, ID: 3})
	all := []*ddp.Segment{response(7, 1020, 10, false), response(7, 1120, 10, false), response(8, 1020, 10, false)}
	takes := func(which int, want bool) {
		t.Helper()
		if r, ok := q.TakeAhead(all[which]); ok != want || ok && r.ID != uint64(which+1) {
			t.Errorf("segment %d is taken: %t, for Read %d", which, ok, r.ID)
		}
	}
	for i := range all {
		takes(i, true)
	}
	for dropped := range all {
		q.DropAhead(all[dropped])
		for i := range all {
			takes(i, i == dropped)
		}
	}
}

// TestORQInOrder: what follows a segment may be told without another only where all bytes up to its end have come, and
// none beyond.
func TestORQInOrder(t *testing.T) {
	q := NewORQ(1)
	wants := func(to uint64, n int, want bool) {
		t.Helper()
		if got := q.InOrder(response(7, to, n, false)); got != want {
			t.Errorf("%d bytes at %d: in order %t", n, to, got)
		}
	}
	wants(1000, 10, false) // there is no Read
	q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
	wants(1000, 10, false)
	advance(t, &q, response(7, 1000, 10, false), 1, false)
	wants(1000, 10, true)
	wants(1000, 9, false)
	advance(t, &q, response(7, 1020, 10, false), 1, false)
	wants(1000, 10, false) // bytes beyond have come
	wants(1020, 10, false) // bytes before have not
	advance(t, &q, response(7, 1010, 10, false), 1, false)
	wants(1010, 10, false)
	wants(1020, 10, true)
	q.Came(70)
	advance(t, &q, response(7, 1099, 1, true), 1, true)
}
