package decode_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// hostOrder writes the FPDUPTRs of an FPDU at a stream offset least significant byte first.
func hostOrder(at uint64, b []byte, crc bool) {
	for i := layout.NextMarker(at); i+layout.MarkerLen <= len(b); i += layout.MarkerInterval {
		slices.Reverse(b[i+2 : i+4])
	}
	if end := len(b) - layout.CRCLen; crc {
		binary.LittleEndian.PutUint32(b[end:], layout.CRC32C(0, b[:end]))
	}
}

// unfit opens a connection by frames that do not fit, as the Request has revision 0 and the
// Reply 1. Each end asks for markers or not, and both for CRCs.
func unfit(t *testing.T, markers [2]bool, crc bool) *script {
	s := newScript(t, 0)
	s.send(fw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, M: markers[bw], C: crc}))
	s.send(bw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, M: markers[fw], C: crc, Rev: 1}))
	s.operate(false, crc)
	for d, m := range markers {
		s.mpa[d] = mpa.NewWriter(m, crc)
	}
	return s
}

// misfits is what is said of every connection here.
var misfits = []string{"warning revisions-do-not-fit"}

// TestBehindUnfitStartup has both ends go on after a startup that does not fit. FPDUs are read
// from the end of its frames on, each direction in its own mode, and faults in them are found.
//
// Proves F08, F11, F14, D17.
func TestBehindUnfitStartup(t *testing.T) {
	big := strings.Repeat("E", 1400)
	for _, c := range []struct {
		name  string
		modes [2]bool
		play  func(s *script, crc bool)
		want  []string // where there are CRCs
		plain []string // and where there are none
		fpdus int
	}{
		{"right", [2]bool{}, func(s *script, _ bool) { exchange(s) }, nil, nil, 7},
		{"right, markers", [2]bool{true, true}, func(s *script,
			_ bool) {
			s.message(fw, big)
			s.message(bw, big)
			exchange(s)
		}, nil, nil, 9},
		{"right, markers in one direction", [2]bool{false, true},
			func(s *script, _ bool) { s.message(fw, big); s.message(bw, big); exchange(s) }, nil, nil, 9},
		{"FPDUPTR in host order", [2]bool{true, true}, func(s *script, crc bool) {
			for _, d := range []capture.Dir{fw, bw} {
				at := s.mpa[d].Offset()
				b := s.fpdu(d, s.untagged(d, rdmap.OpSend), []byte(big))
				hostOrder(at, b, crc)
				s.send(d, b)
			}
		}, []string{"error marker-wrong", "error marker-wrong"},
			[]string{"error marker-wrong", "error marker-wrong"}, 2},
		{"several in host order", [2]bool{true, true}, func(s *script, crc bool) {
			for range 3 {
				at := s.mpa[fw].Offset()
				b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(big))
				hostOrder(at, b, crc)
				s.send(fw, b)
			}
		}, slices.Repeat([]string{"error marker-wrong"}, 3), slices.Repeat([]string{"error marker-wrong"}, 3), 3},
		{"MSN across queues", [2]bool{}, func(s *script, _ bool) {
			s.message(fw, "x")
			s.msn[fw][1]++
			s.read(fw, rdmap.ReadRequest{SinkSTag: 5, SrcSTag: 7})
			s.respond(bw, 5, 0, nil)
			s.msn[fw][0]++
			s.message(fw, "y")
		}, []string{"error msn", "error msn"}, []string{"error msn", "error msn"}, 4},
		{"no pads", [2]bool{}, func(s *script, crc bool) {
			for range 3 {
				s.send(fw, s.padded(fw, crc, "x", 0))
			}
		}, slices.Repeat([]string{"error pad"}, 3), slices.Repeat([]string{"error pad"}, 3), 3},
		{"CRCs of zero", [2]bool{}, func(s *script, _ bool) {
			for range 3 {
				b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte("xy"))
				clear(b[len(b)-4:])
				s.send(fw, b)
			}
		}, []string{"error crc-wrong"}, nil, 3},
		{"first FPDU damaged", [2]bool{true, false}, func(s *script, _ bool) {
			b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(big))
			b[100] ^= 1
			s.send(fw, b)
			for range 3 {
				s.message(fw, big)
			}
		}, []string{"error crc-wrong"}, nil, 4},
		{"first two of other sizes damaged", [2]bool{}, func(s *script, _ bool) {
			for _, n := range []int{300, 700} {
				b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(big[:n]))
				b[100] ^= 1
				s.send(fw, b)
			}
			for range 3 {
				s.message(fw, big)
			}
		}, []string{"error crc-wrong"}, nil, 5},
		{"junk in all CRC fields", [2]bool{}, func(s *script, _ bool) {
			for range 6 {
				s.junked(fw, big)
			}
		}, []string{"error crc-wrong"}, nil, 6},
		{"markers counted from the frames on", [2]bool{true, true}, func(s *script, _ bool) {
			s.mpa[fw].Append(nil, make([]byte, 10)) // as long as a frame, with its marker
			for range 6 {
				s.message(fw, big)
			}
		}, nil, nil, 6},
	} {
		for _, crc := range []bool{true, false} {
			s := unfit(t, c.modes, crc)
			c.play(s, crc)
			r := run(t, s.close())
			want := slices.Concat(misfits, c.want)
			if !crc {
				want = slices.Concat(misfits, c.plain)
			}
			fpdus := c.fpdus
			if crc && c.name == "first two of other sizes damaged" {
				fpdus-- // nothing shows where the second one ends
			}
			if !slices.Equal(r.serious(), want) || len(r.fpdus) != fpdus {
				t.Errorf("%s, CRC %t: %q, want %q; %q", c.name, crc, r.texts, want, r.fpdus)
			}
		}
	}
}

// TestUnfitAndStrangers has the ends speak of something else after a startup that does not fit:
// no FPDU is seen in that.
func TestUnfitAndStrangers(t *testing.T) {
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: example\r\n\r\n", "\x00\x00\x00\x00",
		strings.Repeat("\x00", 3000), strings.Repeat("\xff", 3000), "\x00\x14"} {
		s := unfit(t, [2]bool{true, false}, true)
		for range 5 {
			s.send(fw, []byte(text))
			s.send(bw, []byte(text))
		}
		if r := run(t, s.close()); !slices.Equal(r.serious(), misfits) || len(r.fpdus) > 0 {
			t.Errorf("%q: %q, %q", text[:2], r.texts, r.fpdus)
		}
	}
}

// TestEarlyAndGlued has FPDUs in the same segments as the frames of a startup that does not fit.
func TestEarlyAndGlued(t *testing.T) {
	s := newScript(t, 0)
	s.operate(true, true)
	fpdu := func(d capture.Dir) []byte {
		b := s.fpdu(d, s.untagged(d, rdmap.OpSend), bytes.Repeat([]byte("E"), 1000))
		hostOrder(0, b, true)
		return b
	}
	s.send(fw, append(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, M: true, C: true}), fpdu(fw)...))
	s.send(bw, append(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true, Rev: 1}),
		fpdu(bw)...))
	r := run(t, s.close())
	want := []string{"error bytes-before-the-answer", "warning revisions-do-not-fit",
		"error marker-wrong", "error marker-wrong"}
	if !slices.Equal(r.serious(), want) {
		t.Errorf("%q", r.texts)
	}
}

// TestMidstreamSegments begins in the middle of connections without CRCs: where segments hold
// whole FPDUs, these are found whatever their pads are.
func TestMidstreamSegments(t *testing.T) {
	for _, c := range []struct {
		name string
		pad  func(s *script) []byte
		want []string
	}{
		{"not zero", func(s *script) []byte {
			b := s.padded(fw, false, strings.Repeat("x", 21), 3)
			copy(b[len(b)-7:], "abc")
			return b
		}, []string{"note midstream", "note crc-field-unused", "note pad"}},
		{"missing", func(s *script) []byte { return s.padded(fw, false, strings.Repeat("x", 21), 0) },
			append([]string{"note midstream", "note crc-field-unused"}, slices.Repeat([]string{"error pad"}, 10)...)},
	} {
		s := agreed(t, 0, false, false)
		for range 20 {
			s.send(fw, c.pad(s))
		}
		r := lossy(t, s.close(), func(p *capture.Packet) bool { return p.Number < 7 })
		if !slices.Equal(r.findings, c.want) || len(r.fpdus) != 19 {
			t.Errorf("%s: %q, %d FPDUs", c.name, r.texts, len(r.fpdus))
		}
	}
}

// TestMidstreamCRC begins in the middle of connections with CRCs, one of which is wrong, or all
// of which are in the other byte order.
func TestMidstreamCRC(t *testing.T) {
	for _, c := range []struct{ fpdus, want string }{
		{"..x", "[error crc-wrong]"}, {".....x....", "[error crc-wrong]"}, {"..........", "[]"},
		{"ssssssss", "[error crc-wrong]"}, {"00000000", "[]"},
	} {
		for _, size := range []int{100, 400} {
			s := agreed(t, 0, false, true)
			s.message(fw, "this one is not in the capture")
			for _, x := range c.fpdus {
				b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(strings.Repeat("q", size)))
				mistakes[string(x)](b[len(b)-layout.CRCLen:])
				s.send(fw, b)
			}
			r := lossy(t, s.close(), func(p *capture.Packet) bool { return p.Number < 7 })
			if got := fmt.Sprint(r.serious()); got != c.want {
				t.Errorf("%q, %d bytes: %q, want %s", c.fpdus, size, r.texts, c.want)
			}
		}
	}
}

// TestMidstreamMarkers begins in the middle of streams of short FPDUs with markers, and leaves out
// one more packet: where nothing has shown the markers yet, one is not called a pad.
func TestMidstreamMarkers(t *testing.T) {
	for _, crc := range []bool{true, false} {
		for _, size := range []int{20, 38, 150} {
			s := agreed(t, 0, true, crc)
			for range 40 {
				s.message(fw, strings.Repeat("q", size))
			}
			file := s.close()
			for from := uint64(6); from < 30; from++ {
				r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < from })
				if !crc && size > 20 && len(r.serious()) > 0 {
					t.Errorf("CRC %t, %d bytes, from packet %d: %q", crc, size, from, r.texts)
				}
				for lost := from + 1; lost < from+8; lost++ {
					r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < from || p.Number == lost })
					if slices.Contains(r.findings, "error pad") {
						t.Errorf("CRC %t, %d bytes, from packet %d without %d: %q", crc, size, from, lost, r.texts)
					}
				}
			}
		}
	}
}

// TestMidstreamCutMarker has a capture end four bytes before an FPDU does that has a marker in it,
// where nothing has shown yet that there are markers: its CRC is not called wrong.
func TestMidstreamCutMarker(t *testing.T) {
	for missing := 1; missing <= 4; missing++ {
		s := agreed(t, 0, true, true)
		for range 7 {
			s.message(fw, strings.Repeat("q", 38)) // 64 bytes each, and a marker at 0
		}
		b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), []byte(strings.Repeat("q", 38))) // with that at 512
		s.send(fw, b[:len(b)-missing])
		r := lossy(t, s.fileBytes(), func(p *capture.Packet) bool { return p.Number < 10 })
		if want := missing == 4; len(r.serious()) > 0 != want {
			t.Errorf("%d bytes are missing: %q", missing, r.texts)
		}
	}
}
