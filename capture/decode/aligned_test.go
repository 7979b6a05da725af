package decode_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// declaring decodes a capture of raw IPv4 packets after the MSS in each SYN, its first TCP
// option, was changed; 0 takes the option out.
func declaring(t *testing.T, file []byte, mss uint16) *record {
	t.Helper()
	return passed(t, file, func(p *capture.Packet, on func(*capture.Packet)) {
		const flags, options = 20 + 13, 20 + 20
		if p.Data[flags]&byte(capture.SYN) != 0 {
			p.Data = slices.Clone(p.Data)
			option := []byte{2, 4, byte(mss >> 8), byte(mss)} // kind and length: RFC 9293, section 3.2
			if mss == 0 {
				option = []byte{1, 1, 1, 1}
			}
			copy(p.Data[options:], option)
		}
		on(p)
	})
}

// TestAlignmentCut has packets larger than the MSS, as captured above an interface that
// cuts them: they count as the segments that they are cut into.
func TestAlignmentCut(t *testing.T) {
	const mss = 1000
	// FPDUs of Writes take 20 bytes beside their payload.
	for _, c := range []struct {
		what  string
		sizes []int // of FPDUs that leave in one packet
		want  decode.Alignment
	}{
		{"one FPDU a segment", []int{1000, 1000, 1000}, decode.Alignment{Segments: 3, Aligned: 3, Cut: 1}},
		{"the last segment is short", []int{1000, 1000, 400}, decode.Alignment{Segments: 3, Aligned: 3, Cut: 1}},
		{"several FPDUs a segment", []int{400, 600, 200, 200, 600, 300},
			decode.Alignment{Segments: 3, Aligned: 3, Cut: 1}},
		{"one segment, not cut", []int{400, 300}, decode.Alignment{Segments: 1, Aligned: 1}},
		{"FPDUs of four bytes less", []int{996, 996, 996}, decode.Alignment{Segments: 3, Aligned: 0, Cut: 1}},
		{"alignment comes back", []int{600, 1000, 400, 1000}, decode.Alignment{Segments: 3, Aligned: 1, Cut: 1}},
		{"an FPDU larger than the MSS", []int{2000, 1000}, decode.Alignment{Segments: 3, Aligned: 1, Cut: 1}},
		{"a segment within an FPDU", []int{400, 2600, 1000}, decode.Alignment{Segments: 4, Aligned: 1, Cut: 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newScript(t, 60000)
			s.startup(false)
			var packet []byte
			for _, size := range c.sizes {
				h := tagged(0x1234)
				packet = append(packet, s.fpdu(fw, h, make([]byte, size-20))...)
			}
			s.send(fw, packet)
			r := declaring(t, s.close(), mss)
			got := r.conns[0].Halves[fw].Wire
			want := c.want
			// with the RTR indication
			want.MSS, want.MSSAtEnd, want.Segments, want.Aligned = mss, mss, want.Segments+1, want.Aligned+1
			if got != want {
				t.Errorf("FPDUs of %d: %+v, want %+v", c.sizes, got, want)
			}
			said := slices.ContainsFunc(r.conns[0].Summary(),
				func(row [2]string) bool { return strings.Contains(row[1], "above the MSS of 1000") })
			if said != (want.Cut > 0) {
				t.Errorf("it is said that packets are cut: %v", said)
			}
		})
	}
}

// TestAlignmentUncut has the same packet in a capture without the MSS: it counts as it is.
func TestAlignmentUncut(t *testing.T) {
	s := newScript(t, 60000)
	s.startup(false)
	s.send(fw, slices.Concat(s.fpdu(fw, tagged(1), make([]byte, 980)), s.fpdu(fw, tagged(1), make([]byte, 980))))
	got := declaring(t, s.close(), 0).conns[0].Halves[fw].Wire
	if want := (decode.Alignment{Segments: 2, Aligned: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// tagged returns the header of a Write of one segment.
func tagged(stag uint32) ddp.Header {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, stag
	return h
}
