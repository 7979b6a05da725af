package recovery_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// even returns a stream of n FPDUs that take 512 bytes each: with markers, each has
// one in front.
func even(markers, crc bool, n int) *plan {
	var ulpdus [][]byte
	for i := range n {
		length := 506
		if markers {
			length = 502
		}
		ulpdus = append(ulpdus, bytes.Repeat([]byte{0xa0 + byte(i)}, length))
	}
	return newPlan(markers, crc, ulpdus)
}

// told returns an event in words: which bytes, how found and what is delivered then.
func told(ev recovery.Event) string {
	s := fmt.Sprintf("%v %d-%d", ev.Kind, ev.Offset, ev.End)
	if ev.Located > 0 {
		s += fmt.Sprintf(" %v", ev.Located)
	}
	return s + fmt.Sprintf(" (%d)", ev.Delivered)
}

func (s *sink) story() string {
	var list []string
	for _, ev := range s.events {
		list = append(list, told(ev))
	}
	return strings.Join(list, ", ")
}

// Proves R03, R04, R05: the cases of RFC 5044, Appendix A.4, in and out of order: FPDUs
// of 512 bytes, with a marker in front of each.
func TestReceiverAlignment(t *testing.T) {
	for _, c := range []struct {
		name string
		segs []segment
		want string
	}{
		{"single, in order", []segment{{0, 512}, {512, 1024}},
			"placed 0-512 in order (512), placed 512-1024 in order (1024)"},
		{"single, out of order", []segment{{512, 1024}, {0, 512}},
			"placed 512-1024 by marker (0), placed 0-512 in order (1024)"},
		{"packed, in order", []segment{{0, 1024}},
			"placed 0-512 in order (512), placed 512-1024 in order (1024)"},
		{"packed, out of order", []segment{{512, 1536}, {0, 512}},
			"placed 512-1024 by marker (0), placed 1024-1536 by length (0), placed 0-512 in order (1536)"},
		{"incomplete, in order", []segment{{0, 300}, {300, 512}},
			"placed 0-512 in order (512)"},
		{"incomplete, out of order", []segment{{512, 700}, {700, 1024}, {0, 512}},
			"placed 512-1024 by marker (0), placed 0-512 in order (1024)"},
		{"incomplete, its end first", []segment{{700, 1024}, {512, 700}, {0, 512}},
			"placed 512-1024 by marker (0), placed 0-512 in order (1024)"},
		{"unaligned start, in order", []segment{{0, 700}, {700, 1024}},
			"placed 0-512 in order (512), placed 512-1024 in order (1024)"},
		{"unaligned start, out of order", []segment{{300, 1024}, {0, 300}},
			"placed 512-1024 by marker (0), placed 0-512 in order (1024)"},
		{"unaligned start, its beginning never", []segment{{900, 1536}},
			"placed 1024-1536 by marker (0)"},
		{"both ends unaligned, in order", []segment{{0, 300}, {300, 1300}, {1300, 1536}},
			"placed 0-512 in order (512), placed 512-1024 in order (1024), placed 1024-1536 in order (1536)"},
		{"both ends unaligned, out of order", []segment{{300, 1300}, {1300, 1536}, {0, 300}},
			"placed 512-1024 by marker (0), placed 1024-1536 by length (0), placed 0-512 in order (1536)"},
		{"a marker at the end", []segment{{900, 1028}, {1028, 1536}},
			"placed 1024-1536 by marker (0)"},
		{"overlap on both sides", []segment{{400, 1100}, {0, 600}, {1000, 1536}},
			"placed 512-1024 by marker (0), placed 0-512 in order (1024), placed 1024-1536 in order (1536)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSink(even(true, true, 4), recovery.Config{}, t.Fatalf)
			for _, seg := range c.segs {
				s.segment(seg)
			}
			if got := s.story(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Proves R03, R05: without markers nothing is found out of order, and all of it when the
// gap is closed, with and without CRC.
func TestReceiverWithoutMarkers(t *testing.T) {
	for _, crc := range []bool{false, true} {
		s := newSink(even(false, crc, 3), recovery.Config{}, t.Fatalf)
		s.segment(segment{512, 1536})
		if from, to, ok := s.r.Missing(); s.story() != "" || from != 0 || to != 512 || !ok {
			t.Errorf("out of order: %q, missing %d to %d", s.story(), from, to)
		}
		if got := s.r.Stats(); got.Held != 1024 || got.MostHeld != 1024 {
			t.Errorf("out of order: %+v", got)
		}
		s.segment(segment{0, 512})
		want := "placed 0-512 in order (512), placed 512-1024 in order (1024), placed 1024-1536 in order (1536)"
		if got := s.story(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if _, _, ok := s.r.Missing(); ok || s.r.Stats().Held != 0 {
			t.Errorf("in the end: missing %v, %+v", ok, s.r.Stats())
		}
	}
}

// Proves R03: an FPDU with several markers is found by any of them, and one that begins
// after a marker begins at that marker.
func TestReceiverLargeFPDU(t *testing.T) {
	l := newPlan(true, true, [][]byte{make([]byte, 502), make([]byte, 3000), make([]byte, 90)})
	s := newSink(l, recovery.Config{}, t.Fatalf)
	for _, seg := range []segment{{2000, 3200}, {600, 2000}, {512, 600}, {3200, len(l.stream)}} {
		s.segment(seg)
	}
	f := l.frames[1]
	want := fmt.Sprintf("placed %d-%d by marker (0), placed %d-%d by length (0)", f.start, f.end, f.end, len(l.stream))
	if got := s.story(); f.start != 512 || got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Proves R06: bytes that come again are not taken, even if they differ.
func TestReceiverKeepsTheFirst(t *testing.T) {
	l := even(true, true, 3)
	s := newSink(l, recovery.Config{}, t.Fatalf)
	for _, seg := range []segment{{512, 1024}, {1024, 1300}, {100, 200}} {
		s.segment(seg)
	}
	other := make([]byte, 1100)
	s.r.Segment(100, other[:1100])
	s.drain()
	if got := s.r.Stats(); got.Repeated != 100+512+176 {
		t.Errorf("%+v", got)
	}
	s.segment(segment{0, 200})
	if ev := s.events[len(s.events)-1]; ev.Kind != recovery.Failed || ev.Offset != 0 || ev.Err.Code != mpa.CodeCRC {
		t.Errorf("the bytes that came first were replaced: %s", s.story())
	}
}

// Proves Q16, R01: a receiver reports the first error in order and stops; an analyzer
// goes on at the next FPDU, which a wrong marker under a valid CRC does not hide.
func TestReceiverErrors(t *testing.T) {
	for _, c := range []struct {
		name                 string
		markers, crc, resync bool
		damage               func(b []byte) // of the second FPDU, at 512
		want                 string
		code                 mpa.Code
		offset               uint64
	}{
		{"CRC, receiver", true, true, false, func(b []byte) { b[9] ^= 1 },
			"placed 0-512 in order (512), failed 512-1024 in order (512)", mpa.CodeCRC, 1020},
		{"CRC, analyzer", false, true, true, func(b []byte) { b[9] ^= 1 },
			"placed 0-512 in order (512), failed 512-1024 in order (512), lost 512-1024 (1024), resynced 1024-1024 (1024), placed 1024-1536 by scan (1536)", mpa.CodeCRC, 1020},
		{"CRC, analyzer, markers", true, true, true, func(b []byte) { b[9] ^= 1 },
			"placed 0-512 in order (512), failed 512-1024 in order (512), placed 1024-1536 by marker (512), lost 512-1024 (1024), resynced 1024-1024 (1536)", mpa.CodeCRC, 1020},
		{"length, analyzer", false, true, true, func(b []byte) { b[1] ^= 4 },
			"placed 0-512 in order (512), failed 512-1028 in order (512), lost 512-1024 (1024), resynced 1024-1024 (1024), placed 1024-1536 by scan (1536)", mpa.CodeCRC, 1024},
		{"marker, receiver", true, true, false, marker8,
			"placed 0-512 in order (512), failed 512-1024 in order (512)", mpa.CodeMarker, 512},
		{"marker, analyzer", true, true, true, marker8,
			"placed 0-512 in order (512), failed 512-1024 in order (1024), placed 1024-1536 in order (1536)",
			mpa.CodeMarker, 512},
		{"marker, CRC off", true, false, true, marker8,
			"placed 0-512 in order (512), failed 512-1024 in order (512), placed 1024-1536 by marker (512), lost 512-1024 (1024), resynced 1024-1024 (1536)", mpa.CodeMarker, 512},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := even(c.markers, c.crc, 3)
			c.damage(l.stream[512:1024])
			s := newSink(l, recovery.Config{Resync: c.resync}, t.Fatalf)
			s.segment(segment{0, len(l.stream)})
			if got := s.story(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			err := s.events[1].Err
			if err == nil || err.Code != c.code || err.Offset != c.offset {
				t.Errorf("error %v", err)
			}
			s.r.Segment(uint64(len(l.stream)), make([]byte, 8))
			if _, ok := s.r.Next(); ok && !c.resync {
				t.Error("something is reported after an error")
			}
		})
	}
}

// marker8 makes the marker in front of an FPDU wrong, and its CRC right.
func marker8(b []byte) {
	b[3] ^= 8
	copy(b[508:], layout.AppendCRC(nil, layout.CRC32C(0, b[:508])))
}

// Proves Q16, R03: a length in order that reaches into an FPDU that its marker located
// is an error as soon as the gap is closed.
func TestReceiverOverlap(t *testing.T) {
	l := even(true, true, 3)
	l.stream[4] ^= 0x40 // of ULPDU_Length
	s := newSink(l, recovery.Config{}, t.Fatalf)
	s.segment(segment{512, 1536})
	s.segment(segment{0, 512})
	ev := s.events[len(s.events)-1]
	if ev.Kind != recovery.Failed || ev.Err.Code != mpa.CodeMarker || ev.Err.Offset != 4 || ev.Delivered != 0 {
		t.Errorf("%s: %v", s.story(), ev.Err)
	}
	want := "mpa: bad ULPDU_Length at stream offset 4: 17028 bytes from 0 on reach into the FPDU that a marker located at 512"
	if !strings.HasPrefix(ev.Err.Error(), want) {
		t.Errorf("got %v want %s", ev.Err, want)
	}
	r := recovery.New(recovery.Config{Markers: true, CRC: true})
	var marks []recovery.MarkerSeen
	for _, seg := range []segment{{512, 1536}, {0, 512}} {
		r.Segment(uint64(seg.from), l.stream[seg.from:seg.to])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			marks = append(marks, ev.Markers...)
		}
	}
	if diff := cmp.Diff([]recovery.MarkerSeen{{512, 0, true}, {1024, 0, true}, {0, 0, true}}, marks); diff != "" {
		t.Error(diff)
	}
}

// An FPDU that is whole in a segment is not copied, even if the one before it was split.
func TestReceiverDoesNotCopy(t *testing.T) {
	l := even(false, true, 3)
	r := recovery.New(recovery.Config{CRC: true})
	for _, seg := range []segment{{0, 300}, {300, 1536}} {
		r.Segment(uint64(seg.from), l.stream[seg.from:seg.to])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			if in := &ev.Bytes[0] == &l.stream[ev.Offset]; in != (ev.Offset > 0) {
				t.Errorf("%s: in the segment: %v", told(ev), in)
			}
		}
	}
}

// Proves R07: a full buffer makes a receiver forget what is farthest, and an analyzer
// give up what is missing.
func TestReceiverBuffer(t *testing.T) {
	l := even(false, true, 8)
	s := newSink(l, recovery.Config{Buffer: 1024}, t.Fatalf)
	s.segment(segment{512, 2000})
	s.segment(segment{3000, 3100})
	if got, want := s.story(), "dropped 1536-2000 (0), dropped 3000-3100 (0)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.segment(segment{0, 4096})
	if got := s.r.Stats(); len(s.placed) != 8 || got.MostHeld != 1024 || got.Dropped != 564 {
		t.Errorf("%d FPDUs placed: %+v", len(s.placed), got)
	}
	s = newSink(l, recovery.Config{Buffer: 1024, Resync: true}, t.Fatalf)
	s.segment(segment{0, 100})
	s.segment(segment{600, 2000})
	want := "cut 0-512 in order (512), lost 512-600 (600), lost 600-1024 (1024), resynced 1024-1024 (1024), " +
		"placed 1024-1536 by scan (1536)"
	if got := s.story(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.r.Stats().Lost; got != 1024 {
		t.Errorf("%d bytes lost", got)
	}
}

// Pieces that are far apart are bounded in number, and the stream goes on.
func TestReceiverManyHoles(t *testing.T) {
	for _, resync := range []bool{false, true} {
		l := even(false, true, 40)
		s := newSink(l, recovery.Config{Resync: resync}, t.Fatalf)
		for at := 1; at < len(l.stream); at += 2 {
			s.segment(segment{at, at + 1})
		}
		if got := s.count(recovery.Dropped); (got == 0) != resync {
			t.Errorf("resync %v: %d dropped", resync, got)
		}
		s.segment(segment{0, len(l.stream)})
		if want := uint64(len(l.stream)); s.r.Delivered() != want {
			t.Errorf("resync %v: delivered up to %d of %d", resync, s.r.Delivered(), want)
		}
	}
}

// With as many pieces as there may be, bytes are held only next to one of them.
func TestReceiverMostPieces(t *testing.T) {
	s := newSink(even(false, true, 10), recovery.Config{}, t.Fatalf)
	for at := 3; at < 3+2*1024; at += 2 {
		s.segment(segment{at, at + 1})
	}
	for _, at := range []int{1, 2051, 2, 2050, 2051} {
		s.segment(segment{at, at + 1})
	}
	if got, want := s.story(), "dropped 1-2 (0), dropped 2051-2052 (0)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.r.Stats(); got.Dropped != 2 || got.Held != 1024+3 {
		t.Errorf("%+v", got)
	}
}

// Nothing is allocated per FPDU in order, whole or split, in any mode.
func TestReceiverDoesNotAllocate(t *testing.T) {
	for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		l := newPlan(mode.markers, mode.crc, slicesOf(3000, 400))
		r := recovery.New(recovery.Config{Markers: mode.markers, CRC: mode.crc})
		at := 0
		next := func() {
			to := min(at+1460, len(l.stream))
			r.Segment(uint64(at), l.stream[at:to])
			for ok := true; ok; {
				_, ok = r.Next()
			}
			at = to
		}
		for range 10 {
			next()
		}
		if allocs := testing.AllocsPerRun(500, next); allocs != 0 {
			t.Errorf("%+v: %v allocations per segment", mode, allocs)
		}
	}
}

func slicesOf(length, n int) (ulpdus [][]byte) {
	for range n {
		ulpdus = append(ulpdus, make([]byte, length))
	}
	return ulpdus
}

// What was reported has to be taken before the next segment.
func TestReceiverMisuse(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r := recovery.New(recovery.Config{})
	r.Segment(0, make([]byte, 16))
	r.Next()
	r.Segment(16, make([]byte, 8))
}

// Where stream offsets end, bytes are ignored.
func TestReceiverEndOfOffsets(t *testing.T) {
	r := recovery.New(recovery.Config{})
	for _, c := range []struct {
		offset uint64
		held   int
	}{
		{1<<63 + 50, 0}, {math.MaxUint64 - 3, 0}, {1 << 63, 0}, {1<<63 - 50, 50}, {1<<63 - 150, 150},
	} {
		r.Segment(c.offset, make([]byte, 100))
		if ev, ok := r.Next(); ok || r.Stats().Held != c.held {
			t.Errorf("from %d: %s, %d bytes held, want %d", c.offset, told(ev), r.Stats().Held, c.held)
		}
	}
}

// The end of the 64-bit offsets is nothing special, and names are for people.
func TestReceiverEdges(t *testing.T) {
	r := recovery.New(recovery.Config{Markers: true, CRC: true})
	r.Segment(math.MaxUint64-3, make([]byte, 100))
	r.Segment(1<<63-200, make([]byte, 100))
	if ev, ok := r.Next(); ok {
		t.Errorf("%s", told(ev))
	}
	r.SkipTo(math.MaxUint64)
	var got []string
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		got = append(got, ev.Kind.String())
	}
	got = append(got, recovery.Kind(0).String(), recovery.Kind(7).String(), recovery.Location(0).String(),
		recovery.Location(6).String())
	got = append(got, recovery.Kind(9).String(), recovery.LocatedByScan.String(), recovery.Location(9).String(),
		recovery.ConfidenceGood.String(), recovery.Confidence(5).String(), recovery.Confidence(9).String())
	want := []string{"lost", "lost", "event 0", "event 7", "location 0", "location 6", "event 9", "by scan",
		"location 9", "good", "confidence 5", "confidence 9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
