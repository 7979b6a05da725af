package decode_test

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// orderCases are messages whose segments come in an unusual order, and what is found.
var orderCases = []struct {
	name     string
	play     func(s *script)
	findings []string
}{
	{"MO in another order", func(s *script) {
		s.pieces([3]int{100, 50, 0}, [3]int{0, 60, 0}, [3]int{40, 60, 0}, [3]int{120, 80, 1})
		exchange(s)
	}, []string{"note segment-order", "note segment-order", "note segment-order", "note segment-order"}},
	{"the same twice, and an empty end", func(s *script) {
		s.pieces([3]int{0, 100, 0}, [3]int{0, 100, 0}, [3]int{100, 0, 1})
		exchange(s)
	}, []string{"note segment-order"}},
	{"as many bytes, and a gap", func(s *script) {
		s.pieces([3]int{0, 50, 0}, [3]int{0, 50, 0}, [3]int{100, 50, 1})
		exchange(s)
	}, []string{"note segment-order", "error mo"}},
	{"the last has not the highest MO", func(s *script) {
		s.pieces([3]int{0, 50, 0}, [3]int{50, 50, 0}, [3]int{40, 60, 1})
		exchange(s)
	}, []string{"error mo"}},
	{"bytes after the last", func(s *script) {
		s.pieces([3]int{0, 50, 0}, [3]int{50, 50, 0}, [3]int{50, 40, 1})
		exchange(s)
	}, []string{"error mo"}},
	{"an empty message of two segments", func(s *script) {
		s.pieces([3]int{0, 0, 0}, [3]int{0, 0, 1})
		exchange(s)
	}, []string{"error mo"}},
	{"an empty segment, and one with all", func(s *script) {
		s.pieces([3]int{0, 0, 0}, [3]int{0, 50, 1})
		exchange(s)
	}, nil},
	{"Response in another order", func(s *script) {
		s.message(fw, "x")
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 8, Size: 100})
		h := rdmap.OpReadResponse.Header(1)
		for _, p := range [][3]int{{50, 50, 0}, {0, 60, 0}, {0, 0, 1}} {
			h.STag, h.TO, h.Last = 9, 8+uint64(p[0]), p[2] == 1
			s.segment(bw, h, make([]byte, p[1]))
		}
	}, []string{"note segment-order", "note segment-order"}},
}

// TestSegmentOrder: any order of segments is legal, and so are overlaps, if the last one ends the message.
//
// Proves D11, D24, D25, D27, D28.
func TestSegmentOrder(t *testing.T) {
	for _, c := range orderCases {
		s := newScript(t, 0)
		s.startup(false)
		c.play(s)
		if r := run(t, s.close()); !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.findings)
		}
	}
}
