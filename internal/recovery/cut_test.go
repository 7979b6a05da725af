package recovery_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/goiwarp/iwarp/internal/recovery"
)

// Proves R03: without CRC a marker is not believed that lies after the FPDU it points to.
func TestReceiverStrayMarker(t *testing.T) {
	l := even(true, false, 3)
	copy(l.stream[824:], []byte{0, 4})          // as if an FPDU of 12 bytes began
	copy(l.stream[1024:], []byte{0, 0, 0, 200}) // in front of the third FPDU: 824 is meant
	s := newSink(l, recovery.Config{}, t.Fatalf)
	s.segment(segment{800, 1536})
	if got := s.story(); got != "" {
		t.Errorf("got %s", got)
	}
	l = even(true, false, 3)
	copy(l.stream[1012:], []byte{0, 4})        // as if an FPDU of 12 bytes ended right before
	copy(l.stream[1024:], []byte{0, 0, 0, 12}) // the marker
	s = newSink(l, recovery.Config{}, t.Fatalf)
	s.segment(segment{800, 1536})
	if got := s.story(); got != "" {
		t.Errorf("right after the FPDU: %s", got)
	}
}

// Proves R03: markers that come after a gap after it was closed are used when the FPDU
// around it turns out to be wrong.
func TestReceiverMarkersBehindGap(t *testing.T) {
	for name, segs := range map[string][]segment{
		"gap closed":               {{600, 700}, {0, 600}, {700, 2048}},
		"gap ends within a marker": {{1026, 1500}, {0, 1026}, {1500, 2048}},
		"two gaps":                 {{600, 700}, {800, 900}, {0, 600}, {700, 800}, {900, 2048}},
	} {
		l := even(true, false, 4)
		l.stream[515] ^= 8 // the marker in front of the second FPDU
		s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
		for _, seg := range segs {
			s.segment(seg)
		}
		want := "placed 0-512 in order (512), failed 512-1024 in order (512), placed 1024-1536 by marker (512), " +
			"placed 1536-2048 by length (512), lost 512-1024 (1024), resynced 1024-1024 (2048)"
		if got := s.story(); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

// Proves R03: a marker before bytes that were held is used when a wrong ULPDU_Length
// reaches over both.
func TestReceiverMarkerBeforeHeld(t *testing.T) {
	l := even(true, false, 4)
	copy(l.stream[516:], []byte{0x04, 0x06}) // ULPDU_Length of the second FPDU: 1030
	s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
	for _, seg := range []segment{{1100, 1300}, {0, 1100}, {1300, 2048}} {
		s.segment(seg)
	}
	want := "placed 0-512 in order (512), failed 512-1560 in order (512), placed 1024-1536 by marker (512), " +
		"placed 1536-2048 by length (512), lost 512-1024 (1024), resynced 1024-1024 (2048)"
	if got := s.story(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// With every segment cut short, as by a snap length, the lengths tell where the next
// FPDU is, and the beginning of each ULPDU is reported.
func TestReceiverSnapLength(t *testing.T) {
	for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		l := even(mode.markers, mode.crc, 4)
		s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
		for at := 0; at < len(l.stream); at += 512 {
			s.r.Segment(uint64(at), l.stream[at:at+96])
			s.drain()
			s.r.SkipTo(uint64(at) + 512)
			ev, ok := s.r.Next()
			beginning := l.frames[at/512].ulpdu[:at+96-l.frames[at/512].header]
			if !ok || !bytes.Equal(ev.ULPDU, beginning) || ev.Length != len(l.frames[at/512].ulpdu) {
				t.Errorf("%+v: %s with %d bytes of %d", mode, told(ev), len(ev.ULPDU), ev.Length)
			}
			s.event(ev)
		}
		want := "cut 0-512 in order (512), cut 512-1024 by the length of a cut FPDU (1024), " +
			"cut 1024-1536 by the length of a cut FPDU (1536), cut 1536-2048 by the length of a cut FPDU (2048)"
		if got := s.story(); got != want {
			t.Errorf("%+v: got  %s\nwant %s", mode, got, want)
		}
	}
}

// A length that was not verified is not followed where a marker, a ULPDU that is not
// plausible or a wrong CRC contradicts.
func TestReceiverCutContradicted(t *testing.T) {
	for _, c := range []struct {
		name         string
		markers, crc bool
		want         string
	}{
		{"marker", true, false, "placed 512-1024 by marker (0), placed 1024-1536 by length (0), cut 0-1048 in order (0), lost 0-200 (200), " +
			"lost 200-400 (400), lost 400-512 (512), resynced 512-512 (1536)"},
		{"CRC", false, true, "cut 0-1036 in order (1036), lost 1036-1536 (1536), " +
			"resynced 1536-1536 (1536), placed 1536-2048 by scan (2048)"},
		{"plausible", false, false, "cut 0-1036 in order (1036), lost 1036-2048 (2048)"},
		{"plausible, whole", false, false, "cut 0-1036 in order (1036), lost 1036-2048 (2048)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := even(c.markers, c.crc, 4)
			copy(l.stream[l.frames[0].header-2:], []byte{0x04, 0x06}) // ULPDU_Length: 1030
			cfg := recovery.Config{Resync: true}
			if c.name == "plausible" {
				cfg.Plausible = func([]byte) bool { return false }
			}
			if c.name == "plausible, whole" { // an FPDU of a ULPDU of no bytes
				cfg.Plausible = func(u []byte) bool { return len(u) > 0 }
				clear(l.stream[1036:1500])
			}
			s := newSink(l, cfg, t.Fatalf)
			to := len(l.stream)
			if c.markers {
				to = 1536
			}
			for _, seg := range []segment{{0, 200}, {400, to}} {
				s.segment(seg)
			}
			s.r.SkipTo(400)
			s.drain()
			s.r.SkipTo(uint64(to))
			s.drain()
			s.r.SkipTo(math.MaxUint64)
			s.drain()
			if got := s.story(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Without CRCs an FPDU of which only a marker is wrong is read on from by its
// ULPDU_Length, if it is plausible and nothing contradicts.
func TestReceiverMismarked(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(l *plan)
		want  string
	}{
		{"marker", func(l *plan) {},
			"placed 0-512 in order (512), failed 512-1024 in order (1024), " +
				"placed 1024-1536 by the length of a cut FPDU (1536), placed 1536-2048 in order (2048)"},
		{"and the next one", func(l *plan) { l.stream[1024+3] ^= 8 },
			"placed 0-512 in order (512), failed 512-1024 in order (1024), " +
				"failed 1024-1536 by the length of a cut FPDU (1536), placed 1536-2048 by the length of a cut FPDU (2048)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := even(true, false, 4)
			l.stream[512+3] ^= 8
			c.spoil(l)
			s := newSink(l, recovery.Config{Resync: true, Markers: true,
				Plausible: func([]byte) bool { return true }}, t.Fatalf)
			s.segment(segment{0, len(l.stream)})
			s.r.SkipTo(math.MaxUint64)
			s.drain()
			if got := s.story(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
