package recovery_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/recovery"
)

// A step of a dialogue gives a segment, and then gives up what is missing before an offset.
type step struct {
	segment
	skip int
}

// Proves R03, R06: what becomes of the FPDUs around bytes that are given up.
func TestReceiverAroundGaps(t *testing.T) {
	never := func([]byte) bool { return false }
	for _, c := range []struct {
		name         string
		markers, crc bool
		plausible    func([]byte) bool
		steps        []step
		want         string
	}{
		{"more may come right after what is held", false, true, nil,
			[]step{{segment{0, 100}, 0}, {segment{600, 1100}, 1100}, {segment{1100, 1536}, 0}},
			"cut 0-512 in order (512), lost 512-600 (600), lost 600-1024 (1024), resynced 1024-1024 (1024), placed 1024-1536 by scan (1536)"},
		{"the beginning of a gap", false, true, nil,
			[]step{{segment{0, 100}, 0}, {segment{700, 1536}, 600}, {segment{}, 700}},
			"cut 0-512 in order (512), lost 512-600 (600), lost 600-700 (700), " +
				"lost 700-1024 (1024), resynced 1024-1024 (1024), placed 1024-1536 by scan (1536)"},
		{"a cut FPDU before one that was found", true, true, nil,
			[]step{{segment{0, 200}, 0}, {segment{512, 1024}, 512}},
			"placed 512-1024 by marker (0), cut 0-512 in order (1024)"},
		{"a marker right after a cut FPDU", true, true, nil,
			[]step{{segment{0, 200}, 0}, {segment{400, 600}, 400}, {segment{600, 1024}, 0}},
			"cut 0-512 in order (512), placed 512-1024 by the length of a cut FPDU (1024)"},
		{"a piece that ends with a cut FPDU", false, true, nil,
			[]step{{segment{0, 200}, 0}, {segment{400, 512}, 400}, {segment{512, 1024}, 0}},
			"cut 0-512 in order (512), placed 512-1024 by the length of a cut FPDU (1024)"},
		{"a marker in a piece of which the beginning was cut", true, false, never,
			[]step{{segment{0, 200}, 0}, {segment{400, 700}, 400}, {segment{700, 1536}, 0}},
			"cut 0-512 in order (512), placed 512-1024 by marker (512), placed 1024-1536 by length (512), resynced 512-512 (1536)"},
		{"a marker after an implausible beginning", true, false, never,
			[]step{{segment{0, 200}, 0}, {segment{512, 700}, 512}, {segment{700, 1536}, 0}},
			"cut 0-512 in order (512), placed 512-1024 by marker (512), placed 1024-1536 by length (512), resynced 512-512 (1536)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSink(even(c.markers, c.crc, 4), recovery.Config{Resync: true, Plausible: c.plausible}, t.Fatalf)
			for _, step := range c.steps {
				s.segment(step.segment)
				s.r.SkipTo(uint64(step.skip))
				s.drain()
			}
			if got := s.story(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The markers of a cut FPDU are told of up to the last one that is there.
func TestReceiverCutAfterMarker(t *testing.T) {
	l := newPlan(true, true, [][]byte{make([]byte, 1000)})
	r := recovery.New(recovery.Config{Markers: true, CRC: true, Resync: true})
	r.Segment(0, l.stream[:516])
	r.SkipTo(600)
	ev, ok := r.Next()
	want := []recovery.MarkerSeen{{0, 0, true}, {512, 508, true}}
	if diff := cmp.Diff(want, ev.Markers); diff != "" || !ok || ev.Kind != recovery.Cut {
		t.Errorf("%s: %s", told(ev), diff)
	}
}

// Proves R03: an FPDU in error does not hide the one after it from its marker.
func TestReceiverFoundAfterError(t *testing.T) {
	l := even(true, true, 4)
	l.stream[1030] ^= 1
	s := newSink(l, recovery.Config{}, t.Fatalf)
	s.segment(segment{512, 2048})
	if got, want := s.story(), "placed 512-1024 by marker (0), placed 1536-2048 by marker (0)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Where the first byte in the middle of a stream is that of an FPDU, nothing is lost.
func TestReceiverMidStreamAtFPDU(t *testing.T) {
	s := newSink(even(false, true, 4), recovery.Config{MidStream: true}, t.Fatalf)
	s.segment(segment{512, 1024})
	if got, want := s.story(), "resynced 512-512 (512), placed 512-1024 by scan (1024)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FPDUs that were found in three pieces are told of as one.
func TestReceiverResyncedToThree(t *testing.T) {
	l := even(true, true, 4)
	l.stream[9] ^= 1
	s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
	for _, seg := range []segment{{512, 1024}, {1536, 2048}, {1024, 1536}, {0, 512}} {
		s.segment(seg)
	}
	ev := s.events[len(s.events)-1]
	if ev.Kind != recovery.Resynced || ev.Offset != 512 || ev.Delivered != 2048 ||
		ev.Sync.FPDUs != 3 || ev.Sync.Bytes != 1536 {
		t.Errorf("%s: %+v", s.story(), ev.Sync)
	}
}

// A length that was not verified is not followed where a marker in a later piece, or only
// the first of two, belongs to another FPDU.
func TestReceiverCutContradictedByMarker(t *testing.T) {
	l := even(true, true, 4)
	copy(l.stream[4:], []byte{0x04, 0x06}) // ULPDU_Length: 1030
	s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
	for _, seg := range []segment{{0, 200}, {400, 900}, {950, 1000}} {
		s.segment(seg)
	}
	s.r.SkipTo(400)
	s.drain()
	if got, want := s.story(), "cut 0-1048 in order (0), lost 0-200 (200), lost 200-400 (400)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is held is searched again when it has grown by a quarter.
func TestReceiverSearchesAQuarterMore(t *testing.T) {
	ulpdus := [][]byte{make([]byte, 406)} // in an FPDU of 412 bytes
	for range 20 {
		ulpdus = append(ulpdus, make([]byte, 10)) // of 16 bytes
	}
	s := newSink(newPlan(false, true, ulpdus), recovery.Config{Resync: true}, t.Fatalf)
	s.segment(segment{0, 1}) // no ULPDU_Length
	s.segment(segment{2, 402})
	s.r.SkipTo(2)
	s.drain()
	for _, c := range []struct {
		seg  segment
		want string
	}{
		{segment{402, 502}, "lost 0-1 (1), lost 1-2 (2)"},
		{segment{502, 503}, "lost 0-1 (1), lost 1-2 (2), lost 2-412 (412), resynced 412-412 (412), " +
			"placed 412-428 by scan (428), placed 428-444 in order (444), placed 444-460 in order (460), " +
			"placed 460-476 in order (476), placed 476-492 in order (492)"},
	} {
		s.segment(c.seg)
		if got := s.story(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Proves R03: when it is found in the middle of a stream where the markers are, those that
// are held after a gap are used too.
func TestReceiverMidStreamAfterGap(t *testing.T) {
	for _, guess := range []bool{false, true} {
		l := even(true, true, 6)
		s := newSink(l, recovery.Config{MidStream: true, Guess: guess, Resync: true}, t.Fatalf)
		var got []string
		for _, seg := range []segment{{100, 400}, {1600, 2700}, {400, 1100}} {
			s.r.Segment(uint64(seg.from), l.stream[seg.from:seg.to])
			for ev, ok := s.r.Next(); ok; ev, ok = s.r.Next() {
				got = append(got, told(ev))
			}
		}
		want := "[lost 100-512 (512) resynced 512-512 (512) placed 512-1024 by scan (1024) placed 2048-2560 by marker (1024)]"
		if fmt.Sprint(got) != want {
			t.Errorf("guess %v: got  %v\nwant %s", guess, got, want)
		}
	}
}

// Proves R07: an analyzer cuts an FPDU for which the buffer is too small, and a receiver
// forgets the end of it, and with it where other FPDUs begin.
func TestReceiverBufferTooSmall(t *testing.T) {
	l := newPlan(false, true, [][]byte{make([]byte, 3000), make([]byte, 90), make([]byte, 90)})
	s := newSink(l, recovery.Config{Buffer: 1024, Resync: true}, t.Fatalf)
	for at := 0; at < len(l.stream); at += 500 {
		s.segment(segment{at, min(at+500, len(l.stream))})
	}
	want := "cut 0-3008 in order (3008), placed 3008-3104 by the length of a cut FPDU (3104), placed 3104-3200 in order (3200)"
	if got := s.story(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	l = newPlan(true, true, [][]byte{make([]byte, 1518), make([]byte, 1518)}) // FPDUs of 1536 bytes
	for _, c := range []struct {
		segs []segment
		want string
	}{
		{[]segment{{1536, 3072}, {0, 1500}, {1024, 1536}},
			"placed 1536-3072 by marker (0), dropped 1024-1500 (0), placed 0-1536 in order (3072)"},
		{[]segment{{300, 1640}, {1324, 1400}, {0, 3072}},
			"dropped 1324-1640 (0), dropped 1324-1400 (0), placed 0-1536 in order (1536), placed 1536-3072 in order (3072)"},
	} {
		s = newSink(l, recovery.Config{Buffer: 1024}, t.Fatalf)
		for _, seg := range c.segs {
			s.segment(seg)
		}
		if got := s.story(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
