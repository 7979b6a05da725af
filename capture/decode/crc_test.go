package decode_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// junked sends a Send whose CRC field is neither right nor like any mistake.
func (s *script) junked(d capture.Dir, payload string) {
	b := s.fpdu(d, s.untagged(d, rdmap.OpSend), []byte(payload))
	binary.LittleEndian.PutUint32(b[len(b)-4:], 0x12345678+uint32(s.sent[d]))
	s.send(d, b)
}

// Mistakes in a CRC field, as names of them.
var mistakes = map[string]func(field []byte){
	"0": func(b []byte) { clear(b) },
	"s": slices.Reverse[[]byte],
	"c": func(b []byte) {
		for i := range b {
			b[i] = ^b[i]
		}
	},
	"x": func(b []byte) { b[1] ^= 4 },
	".": func([]byte) {},
}

// TestWrongCRCs has directions of FPDUs whose CRCs are right (.), damaged (x), zero (0), in the
// other byte order (s) or without the last complement (c). A wrong CRC is no sign of another mode,
// and what a sender does to all alike is said once; every message but a damaged one is read.
//
// Proves F04, F14.
func TestWrongCRCs(t *testing.T) {
	for _, c := range []struct {
		fpdus string
		want  int // errors
	}{
		{"x", 1}, {"x...", 1}, {"...x", 1}, {"..x..", 1}, {"x.x.x", 3}, {"xx....", 1}, {".xx...", 1},
		{"000", 1}, {strings.Repeat("0", 20), 1}, {"0", 1}, {"0...", 1}, {"...0", 1}, {"..0.0", 2}, {"00..00", 2},
		{"sss", 1}, {strings.Repeat("s", 20), 1}, {"s....", 1}, {"ccc", 1}, {"00ss", 2},
	} {
		for _, markers := range []bool{false, true} {
			for _, size := range []int{40, 700, 3000} {
				for _, mss := range []int{0, 1000} {
					s := agreed(t, mss, markers, true)
					read := 0
					for _, x := range c.fpdus {
						b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(strings.Repeat("q", size)))
						mistakes[string(x)](b[len(b)-layout.CRCLen:])
						s.send(fw, b)
						if x != 'x' {
							read++
						}
					}
					name := fmt.Sprintf("%q, markers %t, %d bytes, segments of %d", c.fpdus, markers, size, mss)
					r := run(t, s.close())
					if !slices.Equal(r.serious(), slices.Repeat([]string{"error crc-wrong"}, c.want)) {
						t.Errorf("%s: %q, want %d errors", name, r.texts, c.want)
					}
					if h := &r.conns[0].Halves[fw]; r.sends() != read || h.Ops[rdmap.OpSend].Messages != h.FPDUs ||
						int(h.FPDUs) != strings.Count(c.fpdus, ".") {
						t.Errorf("%s: %d messages, want %d: %+v", name, r.sends(), read, h)
					}
				}
			}
		}
	}
}

// TestZeroCRCRemedy says what to do about a CRC that is a sign of a mistake.
func TestZeroCRCRemedy(t *testing.T) {
	for mistake, want := range map[string]string{
		"0": "it must send CRCs if either side declared C=1, or both must declare C=0",
		"s": "the peer must send the CRC least significant byte first",
	} {
		s := agreed(t, 0, false, true)
		for range 3 {
			b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte("hello"))
			mistakes[mistake](b[len(b)-layout.CRCLen:])
			s.send(fw, b)
		}
		run(t, s.close()).wantTexts(t, want)
	}
}

// TestManyWrongCRCs has none of the CRCs be right, from the first FPDU on and with no pattern:
// then they are off, which is not what was agreed on.
func TestManyWrongCRCs(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, n := range []int{1, 3, 4, 12} {
			s := agreed(t, 0, markers, true)
			for range n {
				s.junked(fw, strings.Repeat("hello", 200))
			}
			r := run(t, s.close())
			if said := slices.Contains(r.findings, "warning not-as-agreed"); said != (n >= 4) {
				t.Errorf("%d FPDUs, markers %t: %q", n, markers, r.texts)
			}
		}
	}
}

// TestWrongCRCThenShort has a long FPDU with a wrong CRC in front of short ones that are right, which
// a search for the one finds late: they show that CRCs are on.
func TestWrongCRCThenShort(t *testing.T) {
	for size := 4000; size < 4512; size += 32 {
		s := agreed(t, 0, true, true)
		s.junked(fw, strings.Repeat("x", size))
		for range 12 {
			s.message(fw, "hello")
		}
		if r := run(t, s.close()); !slices.Equal(r.serious(), []string{"error crc-wrong"}) ||
			r.conns[0].Halves[fw].FPDUs != 12 {
			t.Errorf("%d bytes: %q", size, r.texts)
		}
	}
}

// TestDamagedZeros damages FPDUs of zeros: what lies where the CRC field seems to be is zero then,
// and no sign of a habit.
func TestDamagedZeros(t *testing.T) {
	for name, damage := range map[string]func(b []byte){
		"length": func(b []byte) { b[1] ^= 0x10 },
		"header": func(b []byte) { b[2] ^= 0xff; clear(b[len(b)-layout.CRCLen:]) },
	} {
		for _, at := range []int{2, 5} {
			s := agreed(t, 0, false, true)
			for i := range 6 {
				b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 100))
				if i == at {
					damage(b)
				}
				s.send(fw, b)
			}
			if r := run(t, s.close()); !slices.Equal(r.serious(), []string{"error crc-wrong"}) ||
				r.conns[0].Halves[fw].FPDUs != 5 {
				t.Errorf("%s of FPDU %d: %q", name, at, r.texts)
			}
		}
	}
}
