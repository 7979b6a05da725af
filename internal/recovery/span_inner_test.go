package recovery

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// A buffer uses the room that it has at either end, rather than to grow; and grows if that
// would move its bytes too often.
func TestBytesRoom(t *testing.T) {
	for _, c := range []struct {
		name            string
		head, room      int // bytes free at the beginning, and at the end
		held, add       int
		front           bool // they are added there
		head2, capacity int  // what is free at the beginning then; capacity 0: it grows
	}{
		{"room at the end", 6, 8, 2, 4, false, 6, 16},
		{"just room at the end", 6, 4, 2, 4, false, 6, 12},
		{"just half free", 6, 0, 2, 4, false, 0, 8},
		{"more than half free", 7, 0, 1, 4, false, 0, 8},
		{"less than half free", 5, 0, 3, 3, false, 5, 0},
		{"room in front", 5, 0, 3, 3, true, 2, 8},
		{"just room in front", 4, 0, 4, 4, true, 0, 8},
		{"no room in front", 3, 0, 5, 4, true, 9, 0},
	} {
		buf := make([]byte, c.head+c.held, c.head+c.held+c.room)
		o := buffer{buf: buf, head: c.head}
		copy(o.bytes(), "abcdefgh")
		held, added := bytes.Clone(o.bytes()), []byte("12345678")[:c.add]
		want := append(bytes.Clone(held), added...)
		if c.front {
			o.prepend(added)
			want = append(bytes.Clone(added), held...)
		} else {
			o.append(added)
		}
		if grown := &o.buf[:1][0] != &buf[0]; o.head != c.head2 || grown != (c.capacity == 0) || !grown &&
			cap(o.buf) != c.capacity {
			t.Errorf("%s: %d bytes free in front, capacity %d", c.name, o.head, cap(o.buf))
		}
		if !bytes.Equal(o.bytes(), want) {
			t.Errorf("%s: got %s want %s", c.name, o.bytes(), want)
		}
	}
}

// The largest buffer that a span had, of at most an FPDU, is kept for the next one.
func TestRemoveKeepsBuffer(t *testing.T) {
	r := New(Config{})
	for _, c := range []struct{ capacity, want int }{
		{100, 100}, {50, 100}, {200, 200}, {layout.MaxFPDU, layout.MaxFPDU}, {layout.MaxFPDU + 1, layout.MaxFPDU},
	} {
		r.spans = []span{{buffer: buffer{buf: make([]byte, 1, c.capacity)}}}
		if r.remove(0); cap(r.spare) != c.want || len(r.spare) != 0 || len(r.spans) != 0 {
			t.Errorf("after one of %d bytes: %d of %d", c.capacity, len(r.spare), cap(r.spare))
		}
	}
}

// What a search has summed is kept while it goes on, and no longer.
func TestSumsAreReleased(t *testing.T) {
	r := New(Config{CRC: true, MidStream: true})
	stream := make([]byte, 64)
	stream = append(stream, layout.AppendCRC([]byte{0, 2, 7, 7}, layout.CRC32C(0, []byte{0, 2, 7, 7}))...)
	for _, c := range []struct {
		from, to int
		synced   bool
	}{{0, 40, false}, {40, 50, false}, {50, len(stream), true}} {
		r.Segment(uint64(c.from), stream[c.from:c.to])
		for ok := true; ok; {
			_, ok = r.Next()
		}
		if r.synced != c.synced || (r.sums.after == nil) != c.synced {
			t.Errorf("after byte %d: synced %v, %d sums", c.to, r.synced, len(r.sums.after))
		}
	}
}
