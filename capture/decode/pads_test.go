package decode_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestPads has pads that are not zero, and one of a wrong size.
func TestPads(t *testing.T) {
	for _, c := range []struct {
		op   rdmap.Opcode
		size int
		want string
	}{
		{rdmap.OpSend, 601, "note pad [F03] -> at 44: the pad is not zero (FPDU 2 has 070000 there"},
		{rdmap.OpReadResponse, 601, "warning pad [F03] -> at 44: FPDU 2: the pad is 070000, and not zero"},
	} {
		for _, markers := range []bool{false, true} {
			s := newScript(t, 0)
			s.startup(markers)
			h := c.op.Header(1)
			h.Last, h.MSN = true, 1
			b := s.fpdu(fw, h, make([]byte, c.size))
			b[len(b)-4-padLen(h, c.size)] = 7
			s.send(fw, layout.AppendCRC(b[:len(b)-4], layout.CRC32C(0, b[:len(b)-4])))
			r := run(t, s.close())
			want := c.want
			if markers {
				want = strings.Replace(want, "at 44", "at 48", 1)
			}
			r.wantTexts(t, want)
		}
	}
	s := newScript(t, 0)
	s.startup(false)
	h := s.untagged(fw, rdmap.OpSend)
	b := append(append([]byte{0, 18 + 3}, h.Append(nil)...), "abc"...)
	s.send(fw, layout.AppendCRC(b, layout.CRC32C(0, b)))
	for range 3 {
		s.message(fw, "hello")
	}
	r := run(t, s.close())
	r.wantTexts(t, "pad [F03] -> at 44: FPDU 2: its CRC is right with a pad of 0 bytes, where 1 must be")
	if h := &r.conns[0].Halves[fw]; h.Bad != 1 || h.FPDUs != 4 {
		t.Errorf("%d in error, %d FPDUs, %q", h.Bad, h.FPDUs, r.texts)
	}
}

// padLen returns the bytes of the pad after a segment.
func padLen(h ddp.Header, payload int) int { return -(2 + len(h.Append(nil)) + payload) & 3 }

// padded makes an FPDU of a Send with n bytes of pad, whatever it must have.
func (s *script) padded(d capture.Dir, crc bool, payload string, n int) []byte {
	h := s.untagged(d, rdmap.OpSend)
	b := append(h.Append(make([]byte, layout.LengthLen)), payload...)
	binary.BigEndian.PutUint16(b, uint16(len(b)-layout.LengthLen))
	b = append(b, make([]byte, n)...)
	if !crc {
		return append(b, make([]byte, layout.CRCLen)...)
	}
	return layout.AppendCRC(b, layout.CRC32C(0, b))
}

// agreed opens a connection by frames of revision 1.
func agreed(t *testing.T, mss int, markers, crc bool) *script {
	s := newScript(t, mss)
	s.send(fw, plain(mpa.KeyRequest, markers, crc))
	s.send(bw, plain(mpa.KeyReply, markers, crc))
	s.operate(markers, crc)
	return s
}

// ofULPDU is the pad of a sender that pads the ULPDU, without its length field.
func ofULPDU(payload int) int { return -(18 + payload) & 3 }

func none(int) int { return 0 }

func always3(int) int { return 3 }

// TestPadSizes has senders that pad all FPDUs by a rule of their own: each FPDU that it makes
// wrong is found, and all messages are read. How FPDUs lie to segments does not matter with CRCs.
//
// Proves F03.
func TestPadSizes(t *testing.T) {
	sizes := []int{21, 22, 23, 24, 40, 1, 0, 977, 50, 51, 52, 53}
	for _, rule := range []struct {
		name string
		pad  func(payload int) int
	}{{"none", none}, {"of the ULPDU", ofULPDU}, {"always 3", always3}} {
		for _, crc := range []bool{true, false} {
			for _, mss := range []int{0, 100, 7} {
				for _, glued := range []int{1, 3, len(sizes)} {
					if !crc && mss > 0 {
						continue // nothing tells where FPDUs begin
					}
					s := agreed(t, mss, false, crc)
					var want int
					var b []byte
					for i, n := range sizes {
						if rule.pad(n) != -(20+n)&3 {
							want++
						}
						b = append(b, s.padded(fw, crc, strings.Repeat("x", n), rule.pad(n))...)
						if (i+1)%glued == 0 {
							s.send(fw, b)
							b = nil
						}
					}
					name := fmt.Sprintf("%s, CRC %t, segments of %d, %d at once", rule.name, crc, mss, glued)
					r := run(t, s.close())
					wrong := slices.DeleteFunc(slices.Clone(r.findings),
						func(f string) bool { return f == "note crc-field-unused" })
					told := min(want, 10)
					if !slices.Equal(wrong, slices.Repeat([]string{"error pad"}, told)) ||
						int(r.conns[0].Findings[2]) != want {
						t.Errorf("%s: %q, want %d", name, r.texts, want)
					}
					if h := &r.conns[0].Halves[fw]; r.sends() != len(sizes) || int(h.Bad) != want ||
						int(h.FPDUs) != len(sizes)-want || h.Ops[rdmap.OpSend].Messages != h.FPDUs || h.Lost > 0 || h.Cut > 0 {
						t.Errorf("%s: %+v", name, h)
					}
				}
			}
		}
	}
}

// TestPadsAreRight has FPDUs without CRC that are padded rightly, whatever is in them and however
// they lie to segments: none is accused.
func TestPadsAreRight(t *testing.T) {
	odd := string([]byte{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}) // as the header of a Write
	payloads := []string{strings.Repeat("\x00", 61), odd, "\x00\x14" + odd + odd,
		strings.Repeat("\x00\x0e"+odd+"\x00\x00\x00\x00", 9), "abc", ""}
	for _, mss := range []int{0, 500, 61, 20, 19, 3, 1} {
		for _, version := range []uint8{0, 0x0f} {
			s := agreed(t, mss, false, false)
			for _, p := range payloads {
				h := s.untagged(fw, rdmap.OpSend)
				h.Rsvd = version // bits by which no FPDU looks like one
				s.segment(fw, h, []byte(p))
			}
			r := run(t, s.close())
			if f := r.serious(); len(f) > 0 || r.conns[0].Halves[fw].FPDUs != uint64(len(payloads)) {
				t.Errorf("in segments of %d: %q, %q", mss, r.texts, r.fpdus)
			}
		}
	}
}

// TestPadCutOff closes a direction after an FPDU whose pad is missing: without a CRC, only FPDUs
// before it tell that from one that is cut off.
func TestPadCutOff(t *testing.T) {
	for _, c := range []struct {
		crc    bool
		before int
		want   []string
	}{{true, 0, []string{"error pad"}}, {false, 0, []string{"warning fpdu-cut-off"}},
		{false, 1, []string{"error pad", "error pad"}}} {
		s := agreed(t, 0, false, c.crc)
		for range c.before + 1 {
			s.send(fw, s.padded(fw, c.crc, "x", 0))
		}
		r := run(t, s.close())
		if got := slices.DeleteFunc(r.findings, func(
			f string) bool {
			return f == "note crc-field-unused"
		}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c, r.texts)
		}
	}
}
