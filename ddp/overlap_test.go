package ddp

import "testing"

// Segments may overlap: each is placed, and each byte counts once. So two segments at MO 0 of 32 bytes
// each and a last one at MO 64 do not make a message of 128 bytes, of which 32 would be those that
// were in the buffer before.
//
// Proves D24, D27.
func TestQueueOverlap(t *testing.T) {
	k := newSink(t, 3, 128)
	k.place(seg(1, 0, 32, false))
	k.place(seg(1, 0, 32, false))
	k.place(seg(1, 31, 1, false))
	k.wantPlaced(32)
	k.refuse(seg(1, 64, 64, true), CodeInvalidMO) // 32 to 63 are missing
	k.place(seg(1, 64, 10, false))
	k.place(seg(1, 70, 10, false)) // over the end of a part
	k.place(seg(1, 60, 6, false))  // over its beginning
	k.place(seg(1, 66, 2, false))  // inside
	k.wantPlaced(32 + 20)
	k.place(seg(1, 58, 30, false)) // around
	k.place(seg(1, 90, 5, false))
	k.place(seg(1, 50, 42, false)) // around one, and over the beginning of another
	k.wantPlaced(32 + 45)
	k.place(seg(1, 20, 31, false)) // from the beginning to a part
	k.wantPlaced(95)
	k.place(seg(1, 66, 0, false))
	k.refuse(seg(1, 90, 4, true), CodeInvalidMO)  // ends before what came
	k.refuse(seg(1, 89, 39, true), CodeInvalidMO) // has not the highest MO
	k.deliver(seg(1, 90, 38, true), 128)
	k.deliver(seg(2, 0, 128, true), 128)
	k.place(seg(3, 0, 10, false))
	k.deliver(seg(3, 0, 10, true), 10) // the whole message once more
}

// wantPlaced wants so many bytes of the message under way placed.
func (k *sink) wantPlaced(n uint64) {
	k.t.Helper()
	if got := k.q.Placed(); got != n {
		k.t.Fatalf("%d bytes are placed, want %d", got, n)
	}
}

// The last segment may be empty if the message has bytes, and if it is the only one.
//
// Proves D11, D22, D27.
func TestQueueEmptyLast(t *testing.T) {
	k := newSink(t, 5, 100)
	k.refuse(seg(1, 5, 0, true), CodeInvalidMO) // there is a gap in front of it
	k.place(seg(1, 0, 10, false))
	k.refuse(seg(1, 9, 0, true), CodeInvalidMO)
	k.refuse(seg(1, 11, 0, true), CodeInvalidMO)
	k.deliver(seg(1, 10, 0, true), 10)
	k.place(seg(2, 0, 0, false))
	k.refuse(seg(2, 0, 0, true), CodeInvalidMO) // an empty message of two segments
	k.deliver(seg(2, 0, 1, true), 1)
	k.deliver(seg(3, 0, 0, true), 0)
}

// TestQueueEmptyAhead: an empty segment has no byte, so that its MO is not the highest of the message.
func TestQueueEmptyAhead(t *testing.T) {
	k := newSink(t, 1, 100)
	k.place(seg(1, 0, 10, false))
	k.place(seg(1, 50, 0, false))
	k.deliver(seg(1, 10, 5, true), 15)
}
