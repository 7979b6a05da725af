package ddp

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sink is a queue and what the test lends it: a buffer for every message.
type sink struct {
	t       *testing.T
	q       UntaggedQueue
	buffers int
	size    uint64
}

func newSink(t *testing.T, buffers int, size uint64) *sink {
	return &sink{t: t, q: NewUntaggedQueue(0), buffers: buffers, size: size}
}

// seg is an untagged segment of n bytes.
func seg(msn, mo uint32, n int, last bool) *Segment {
	h := Header{Last: last, Version: 1, MSN: msn, MO: mo}
	return &Segment{Header: h, Raw: h.Append(nil), Payload: make([]byte, n)}
}

// place wants the segment taken, and no delivery.
func (k *sink) place(s *Segment) {
	k.t.Helper()
	if err := k.q.Check(s, k.buffers, k.size); err != nil {
		k.t.Fatalf("%v: %v", s.Header, err)
	}
	if n, delivered := k.q.Place(s); delivered {
		k.t.Fatalf("%v: delivered with %d bytes", s.Header, n)
	}
}

// deliver wants the segment taken, and the message delivered with length bytes.
func (k *sink) deliver(s *Segment, length uint32) {
	k.t.Helper()
	if err := k.q.Check(s, k.buffers, k.size); err != nil {
		k.t.Fatalf("%v: %v", s.Header, err)
	}
	if n, delivered := k.q.Place(s); !delivered || n != length {
		k.t.Fatalf("%v: delivered %t with %d bytes, want %d", s.Header, delivered, n, length)
	}
	k.buffers--
}

// refuse wants the segment refused with a code, and the queue as it was.
func (k *sink) refuse(s *Segment, code Code) {
	k.t.Helper()
	before := k.q
	if a := before.cover.apart; a != nil {
		before.cover.apart = &islands{parts: slices.Clone(a.parts), bytes: a.bytes}
	}
	err := k.q.Check(s, k.buffers, k.size)
	if err == nil || err.Code != code {
		k.t.Fatalf("%v: got %v, want %v", s.Header, err, code)
	}
	if !reflect.DeepEqual(k.q, before) {
		k.t.Fatalf("%v: refused, and the queue changed", s.Header)
	}
}

// Proves D17: MSN begins with 1 and counts messages, not segments.
// Proves D27: a message is delivered with its last segment and not before.
// Proves D28: with its length.
func TestQueueCountsMessages(t *testing.T) {
	k := newSink(t, 3, 100)
	k.place(seg(1, 0, 40, false))
	k.place(seg(1, 40, 40, false))
	k.deliver(seg(1, 80, 20, true), 100)
	k.deliver(seg(2, 0, 7, true), 7)
	k.deliver(seg(3, 0, 0, true), 0)
	if k.q.MSN() != 4 || k.q.Placed() != 0 {
		t.Errorf("expects message %d with %d bytes placed", k.q.MSN(), k.q.Placed())
	}
}

// Proves D17: 0 follows 0xFFFFFFFF.
func TestQueueWraps(t *testing.T) {
	k := newSink(t, 3, 10)
	k.q.msn = math.MaxUint32
	k.refuse(seg(0, 0, 1, true), CodeInvalidMSNRange)
	k.deliver(seg(math.MaxUint32, 0, 1, true), 1)
	k.deliver(seg(0, 0, 1, true), 1)
	k.deliver(seg(1, 0, 1, true), 1)
}

// Proves D36: a segment of another queue is 0x1201, before anything else is looked at.
func TestQueueNumber(t *testing.T) {
	k := newSink(t, 0, 0)
	s := seg(99, 99, 99, true)
	s.QN = 1
	k.refuse(s, CodeInvalidQN)
	q := NewUntaggedQueue(math.MaxUint32)
	s.QN, s.MSN, s.MO = math.MaxUint32, 1, 0
	if err := q.Check(s, 1, 99); err != nil {
		t.Error(err)
	}
}

// Proves D37: no buffer is 0x1202, an MSN out of range 0x1203, for empty messages too.
// Proves D26: a message that was delivered is not delivered again, nor one before its turn.
func TestQueueMSN(t *testing.T) {
	k := newSink(t, 2, 10)
	k.deliver(seg(1, 0, 10, true), 10)
	k.refuse(seg(1, 0, 10, true), CodeInvalidMSNRange)             // again
	k.refuse(seg(3, 0, 10, true), CodeInvalidMSNRange)             // one left out
	k.refuse(seg(0, 0, 10, true), CodeInvalidMSNRange)             // never was
	k.refuse(seg(math.MaxUint32, 0, 0, true), CodeInvalidMSNRange) // nor that
	k.deliver(seg(2, 0, 0, true), 0)
	k.refuse(seg(3, 0, 10, true), CodeInvalidMSNNoBuffer)
	k.refuse(seg(3, 0, 0, true), CodeInvalidMSNNoBuffer)
	k.refuse(seg(4, 0, 0, true), CodeInvalidMSNRange)
}

// The next message's segments do not come before the last of this one.
//
// Proves D27: earlier messages are delivered first.
func TestQueueInterleaved(t *testing.T) {
	k := newSink(t, 2, 10)
	k.place(seg(1, 0, 5, false))
	k.refuse(seg(2, 0, 5, false), CodeInvalidMSNRange)
	k.deliver(seg(1, 5, 5, true), 10)
}

// Proves D38: MO outside the buffer is 0x1204, bytes beyond its end 0x1205, and
// neither sum overflows 32 bits.
func TestQueueBounds(t *testing.T) {
	const size = 100
	for _, tt := range []struct {
		name string
		mo   uint32
		n    int
		last bool
		code Code // 0: taken
	}{
		{"all of it", 0, 100, true, 0},
		{"its last byte", 99, 1, false, 0},
		{"nothing at its end", 100, 0, false, 0},
		{"one byte at its end", 100, 1, false, CodeMessageTooLong},
		{"one byte more than it has", 0, 101, true, CodeMessageTooLong},
		{"one byte beyond its end", 99, 2, false, CodeMessageTooLong},
		{"after its end", 101, 1, false, CodeInvalidMO},
		{"nothing, after its end", 101, 0, false, CodeInvalidMO},
		{"highest MO", math.MaxUint32, 1, false, CodeInvalidMO},
		{"sum of 2^32", math.MaxUint32 - 49, 50, false, CodeInvalidMO},
		{"sum of 2^32+50", math.MaxUint32 - 49, 100, false, CodeInvalidMO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newSink(t, 1, size)
			if tt.code == 0 {
				if err := k.q.Check(seg(1, tt.mo, tt.n, tt.last), 1, size); err != nil {
					t.Fatal(err)
				}
				return
			}
			k.refuse(seg(1, tt.mo, tt.n, tt.last), tt.code)
		})
	}
}

// Proves D38: a message which is longer than its buffer is 0x1205 wherever the cut falls.
func TestQueueTooLong(t *testing.T) {
	for first := 1; first <= 100; first++ {
		k := newSink(t, 1, 100)
		k.place(seg(1, 0, first, false))
		k.refuse(seg(1, uint32(first), 101-first, true), CodeMessageTooLong)
	}
	k := newSink(t, 1, 0)
	k.refuse(seg(1, 0, 1, true), CodeMessageTooLong)
	k.deliver(seg(1, 0, 0, true), 0)
}

// Proves D21: however large the buffer, bytes from 2^32 on are in no message.
func TestQueueLongestMessage(t *testing.T) {
	k := newSink(t, 2, math.MaxUint64)
	k.q.cover.low = math.MaxUint32 - 10
	k.refuse(seg(1, math.MaxUint32-10, 11, true), CodeMessageTooLong)
	k.deliver(seg(1, math.MaxUint32-10, 10, true), math.MaxUint32)
}

// Segments come in any order of MO, the one with the L bit last.
//
// Proves D27: a last segment before all others are placed delivers nothing.
// Proves D11: nor does one which has not the highest MO.
func TestQueueLastSegment(t *testing.T) {
	k := newSink(t, 9, 100)
	k.place(seg(1, 60, 20, false))
	k.place(seg(1, 0, 30, false))
	k.refuse(seg(1, 80, 20, true), CodeInvalidMO) // 30 to 59 are missing
	k.refuse(seg(1, 30, 30, true), CodeInvalidMO) // not the highest MO
	k.place(seg(1, 30, 30, false))
	k.refuse(seg(1, 59, 41, true), CodeInvalidMO) // not the highest MO, though it covers all that is left
	k.refuse(seg(1, 81, 1, true), CodeInvalidMO)
	k.refuse(seg(1, 0, 0, true), CodeInvalidMO)
	k.deliver(seg(1, 80, 20, true), 100)
	k.refuse(seg(2, 5, 5, true), CodeInvalidMO) // begins in the middle
	k.deliver(seg(2, 0, 5, true), 5)
	k.place(seg(3, 0, 5, false))
	k.deliver(seg(3, 5, 0, true), 5) // an empty last segment
	k.place(seg(4, 0, 10, false))
	k.place(seg(4, 20, 10, false))
	k.refuse(seg(4, 20, 10, true), CodeInvalidMO) // 10 to 19 are missing
}

// What a queue remembers of segments out of order is bounded; those in order are none
// of it.
//
// Proves Z31.
func TestQueueIslands(t *testing.T) {
	k := newSink(t, 2, 1<<20)
	for i := range uint32(maxIslands) {
		k.place(seg(1, 2*i+1, 1, false))
	}
	k.refuse(seg(1, 2*maxIslands+1, 1, false), CodeInvalidMO)
	k.place(seg(1, 2*maxIslands, 5, false)) // goes on with the last one
	for i := range uint32(maxIslands) {     // fills the gaps
		k.place(seg(1, 2*i, 1, false))
	}
	k.deliver(seg(1, 2*maxIslands+5, 1, true), 2*maxIslands+6)
	if a := k.q.cover.apart; a != nil {
		t.Errorf("%d islands are left", len(a.parts))
	}
}

// A segment that goes on with the beginning is no part of its own, however many there
// are after a gap.
//
// Proves Z31.
func TestQueueIslandsAndBeginning(t *testing.T) {
	k := newSink(t, 1, 1<<20)
	for i := range uint32(maxIslands) {
		k.place(seg(1, 2*i+10, 1, false))
	}
	k.refuse(seg(1, 1, 1, false), CodeInvalidMO)
	k.place(seg(1, 5, 0, false)) // without bytes it is no part either
	k.place(seg(1, 0, 1, false))
	k.place(seg(1, 1, 1, false))
	if n := k.q.Placed(); n != maxIslands+2 {
		t.Errorf("%d bytes are placed", n)
	}
}

// Against a map of the bytes: whatever lies in the buffer is taken, overlaps included, and a message is
// delivered if and only if all its bytes have come, none of them lies after its end, and no MO is higher than the last
// one's.
func TestQueueCoverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 24
		q := NewUntaggedQueue(0)
		var placed [size]bool
		top, began := 0, false
		for range rapid.IntRange(1, 30).Draw(t, "segments") {
			mo := rapid.IntRange(0, size).Draw(t, "MO")
			s := seg(q.MSN(), uint32(mo), rapid.IntRange(0, size-mo).Draw(t, "n"),
				rapid.IntRange(0, 5).Draw(t, "L") == 0)
			end := mo + len(s.Payload)
			legal := true
			if s.Last {
				legal = mo >= top && !slices.Contains(placed[:mo], false) &&
					!slices.Contains(placed[end:], true) && (end > 0 || !began)
			}
			if err := q.Check(s, 1, size); (err == nil) != legal {
				t.Fatalf("%v with %d bytes: %v; placed %v", s.Header, len(s.Payload), err, placed)
			}
			if !legal {
				continue
			}
			for i := range s.Payload {
				placed[mo+i], top = true, max(top, mo)
			}
			if _, delivered := q.Place(s); delivered {
				placed, top, began = [size]bool{}, 0, false
			} else {
				began = true
			}
			if n := count(placed[:]); q.Placed() != uint64(n) {
				t.Fatalf("%d bytes are placed, want %d of %v", q.Placed(), n, placed)
			}
		}
	})
}

func count(placed []bool) (n int) {
	for _, p := range placed {
		if p {
			n++
		}
	}
	return n
}

// Any message, cut anyhow and sent in any order with the L segment last, is
// put together, and delivered once.
//
// Proves D24: every payload is placed at its offset, whatever the cut.
// Proves D28: the length delivered is MO plus payload of the last segment.
func TestQueueAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "message")
		parts := cut(Header{Version: 1, MSN: FirstMSN}, uint32(len(message)), rapid.IntRange(19, 120).Draw(t, "mulpdu"))
		order := rapid.Permutation(parts[:len(parts)-1]).Draw(t, "order")
		q := NewUntaggedQueue(0)
		buffer := make([]byte, len(message)+rapid.IntRange(0, 5).Draw(t, "room"))
		for i, p := range append(order, parts[len(parts)-1]) {
			s := &Segment{Header: p.Header, Payload: message[p.MO:][:p.N]}
			if err := q.Check(s, 1, uint64(len(buffer))); err != nil {
				t.Fatal(err)
			}
			copy(buffer[s.MO:], s.Payload)
			n, delivered := q.Place(s)
			if delivered != (i == len(parts)-1) || delivered && int(n) != len(message) {
				t.Fatalf("segment %d of %d: delivered %t, %d bytes", i+1, len(parts), delivered, n)
			}
		}
		if !bytes.Equal(buffer[:len(message)], message) {
			t.Fatal("the message changed")
		}
	})
}

// Whatever comes: what is taken lies in the buffer, and no message is
// delivered twice or out of order.
//
// Proves D26, D38: against any sequence of segments.
func TestQueueAnySegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewUntaggedQueue(0)
		var delivered uint32
		for range rapid.IntRange(1, 40).Draw(t, "segments") {
			size := rapid.Uint64Range(0, 20).Draw(t, "size")
			s := seg(rapid.Uint32Range(0, 4).Draw(t, "MSN"), rapid.Uint32Range(0, 22).Draw(t, "MO"),
				rapid.IntRange(0, 22).Draw(t, "n"), rapid.Bool().Draw(t, "L"))
			if q.Check(s, 1, size) != nil {
				continue
			}
			if uint64(s.MO)+uint64(len(s.Payload)) > size {
				t.Fatalf("%v taken into %d bytes", s.Header, size)
			}
			if _, ok := q.Place(s); ok {
				delivered++
				if s.MSN != delivered {
					t.Fatalf("message %d delivered as number %d", s.MSN, delivered)
				}
			}
		}
	})
}

// A queue is in order when what has come are the first bytes of the message, and the last segment ends with them;
// those that follow it need no Check then.
func TestQueueInOrder(t *testing.T) {
	k := newSink(t, 1, 100)
	for _, step := range []struct {
		mo      uint32
		inOrder bool
	}{{10, false}, {30, false}, {20, false}, {0, false}, {40, true}} { // at 0 there was a gap, and what follows that segment has come
		s := seg(1, step.mo, 10, false)
		if k.place(s); k.q.InOrder(s) != step.inOrder {
			t.Errorf("with the segment at %d: %t", step.mo, !step.inOrder)
		}
	}
	if k.q.PlaceNext(5); k.q.Placed() != 55 || !k.q.InOrder(seg(1, 50, 5, false)) {
		t.Errorf("%d bytes placed, and out of order", k.q.Placed())
	}
	k.refuse(seg(1, 49, 20, true), CodeInvalidMO) // the highest MO is that of PlaceNext
	k.refuse(seg(1, 56, 1, true), CodeInvalidMO)
	k.deliver(seg(1, 55, 5, true), 60)
}
