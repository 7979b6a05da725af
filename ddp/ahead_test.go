package ddp

import "testing"

// ahead wants a segment taken ahead of its turn, or not.
func (k *sink) ahead(s *Segment, want bool) {
	k.t.Helper()
	if got := k.q.TakeAhead(s, k.buffers, k.size); got != want {
		k.t.Errorf("%v: taken ahead %t, want %t", s.Header, got, want)
	}
}

func (k *sink) wantReach(n int) {
	k.t.Helper()
	if got := k.q.Reach(); got != n {
		k.t.Errorf("%d messages are reached, want %d", got, n)
	}
}

// What comes ahead may be placed if its message has a buffer, if it fits, and if none of its
// bytes is placed already. It is taken in its turn like any other.
//
// Proves D24, D26, D37, D38.
func TestQueueAhead(t *testing.T) {
	k := newSink(t, 3, 100)
	k.place(seg(1, 0, 10, false))
	k.ahead(seg(1, 9, 5, false), false) // overlaps what is placed
	k.ahead(seg(1, 20, 10, true), true)
	k.ahead(seg(1, 29, 1, false), false) // overlaps what was placed ahead
	k.ahead(seg(3, 0, 100, true), true)
	k.ahead(seg(3, 0, 1, true), false)
	k.ahead(seg(2, 0, 101, true), false) // does not fit
	k.ahead(seg(2, 60, 41, true), false)
	k.ahead(seg(2, 101, 0, true), false)
	k.ahead(seg(2, 100, 0, true), true) // is empty, where the buffer ends
	k.ahead(seg(4, 0, 1, true), false)  // has no buffer
	k.ahead(seg(0, 0, 1, true), false)  // was delivered before
	k.ahead(seg(2, 0, 0, true), true)   // nothing is placed
	other := seg(2, 0, 1, true)
	other.QN = 1
	k.ahead(other, false)
	k.wantReach(3)
	k.place(seg(1, 10, 10, false))
	k.deliver(seg(1, 20, 10, true), 30)
	k.wantReach(2)
	k.deliver(seg(2, 0, 0, true), 0)
	k.deliver(seg(3, 0, 100, true), 100)
	k.wantReach(0)
	k.ahead(seg(4, 0, 1, true), false)
}

// What was sent before in any order of MO is not placed over ahead of its turn, but between it.
//
// Proves D24, D38.
func TestQueueAheadAmongParts(t *testing.T) {
	k := newSink(t, 1, 100)
	k.place(seg(1, 50, 10, false))
	k.ahead(seg(1, 45, 6, false), false) // runs into it
	k.ahead(seg(1, 59, 6, false), false) // begins in it
	k.ahead(seg(1, 40, 30, false), false)
	k.ahead(seg(1, 40, 10, false), true)
	k.ahead(seg(1, 60, 10, false), true)
}

// MSNs wrap ahead of their turn as in it.
//
// Proves D17.
func TestQueueAheadWraps(t *testing.T) {
	k := newSink(t, 2, 10)
	k.q.msn = 0xffffffff
	k.ahead(seg(0, 0, 5, true), true)
	k.ahead(seg(1, 0, 5, true), false)
	k.wantReach(2)
	k.deliver(seg(0xffffffff, 0, 5, true), 5)
	k.deliver(seg(0, 0, 5, true), 5)
}

// TestQueueTrim: the table of what has come ahead is given back when nothing has, and not before.
func TestQueueTrim(t *testing.T) {
	k := newSink(t, 3, 100)
	want := func(slack, table bool) {
		t.Helper()
		got := k.q.Slack()
		if k.q.Trim(); got != slack || (k.q.early != nil) != table {
			t.Errorf("slack %t, and after Trim there is a table: %t", got, k.q.early != nil)
		}
	}
	want(false, false)
	k.ahead(seg(2, 0, 10, false), true)
	want(false, true)
	k.deliver(seg(1, 0, 10, true), 10)
	k.place(seg(2, 0, 10, false))
	k.deliver(seg(2, 10, 10, true), 20)
	want(true, false)
}

// wantEarly wants the first of 100 bytes that were not placed ahead of their turn, of the message under way.
func (k *sink) wantEarly(from, to uint64) {
	k.t.Helper()
	if a, b := k.q.Early().Free(0, 100); a != from || b != to {
		k.t.Errorf("bytes %d to %d are free, want %d to %d", a, b, from, to)
	}
}

// TestQueueDropAhead: what is dropped, as it was not placed after all, may be taken again. What else was taken stays.
func TestQueueDropAhead(t *testing.T) {
	k := newSink(t, 2, 100)
	k.wantEarly(0, 100)
	k.ahead(seg(1, 20, 10, false), true)
	k.ahead(seg(1, 40, 10, false), true)
	k.ahead(seg(2, 20, 10, false), true)
	k.wantEarly(0, 20)
	k.q.DropAhead(seg(1, 20, 10, false))
	k.wantEarly(0, 40)
	k.ahead(seg(1, 40, 10, false), false)
	k.ahead(seg(2, 20, 10, false), false)
	k.ahead(seg(1, 20, 10, false), true)
	k.wantEarly(0, 20)
	k.deliver(seg(1, 0, 100, true), 100)
	k.wantEarly(0, 20) // of message 2
}
