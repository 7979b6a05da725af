package decode_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// sized returns so many FPDUs of Writes of one size, with CRCs.
func sized(n, size int) (b []byte) {
	const around = 2 + 14 + 4 // ULPDU_Length, DDP's header, CRC
	w := mpa.NewWriter(false, true)
	for range n {
		h := rdmap.OpWrite.Header(1)
		h.Last, h.STag, h.TO = true, 7, uint64(len(b))
		b = w.Append(b, h.Append(nil), make([]byte, size-around))
	}
	return b
}

// TestOversized has FPDUs that are far larger than segments, which one note of a direction is about, and large
// packets of FPDUs that are not.
//
// Proves S01.
func TestOversized(t *testing.T) {
	for _, c := range []struct {
		name              string
		mss, packet, size int // of the SYNs, of packets, and of FPDUs
		want              string
	}{
		{"FPDUs of 65020", 1448, 1448, 65020, "an FPDU of 65020 bytes takes 45 TCP segments of at most 1448 bytes"},
		{"FPDUs of 65020 in large packets", 1448, 65020, 65020,
			"an FPDU of 65020 bytes takes 45 TCP segments of at most 1448 bytes"},
		{"twice a segment and a little", 1448, 1448, 2900,
			"an FPDU of 2900 bytes takes 3 TCP segments of at most 1448 bytes"},
		{"twice a segment", 1448, 1448, 2896, ""},
		{"segments in large packets", 1448, 14480, 1448, ""},
		{"segments in large packets that are not aligned", 1448, 65160, 1404, ""},
		{"jumbo frames", 8948, 8948, 8948, ""},
		{"loopback", 65483, 65483, 65020, ""},
		{"tiny segments", 100, 100, 1072, ""},
		{"no SYN", 0, 1448, 65020, ""},
	} {
		p := newTape(capture.LinkRaw)
		if p.mss = c.mss; c.mss > 0 {
			p.open()
		}
		p.data(fw, []byte(request1))
		p.data(bw, []byte(reply1))
		for part := range slices.Chunk(append(sized(3, c.size), sized(1, c.size-4)...), c.packet) {
			p.data(fw, part)
		}
		r := p.decoded(t)
		if len(r.fpdus) != 4 || len(r.without("note fpdu-over-segments")) > 0 {
			t.Errorf("%s: %d FPDUs, %q", c.name, len(r.fpdus), r.texts)
		}
		if got := strings.Join(r.texts, "\n"); len(r.texts) > 1 || c.want == "" && got != "" ||
			!strings.HasPrefix(strings.TrimPrefix(got, "note fpdu-over-segments [S01] -> at 20: "), c.want) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.want)
		}
	}
}

// TestNotOversized has nothing of that in captures of real connections.
func TestNotOversized(t *testing.T) {
	for _, path := range testrig.Captures(t, testrig.Stored) {
		file, err := os.ReadFile(path)
		testrig.Must(t, err)
		if r := run(t, file); slices.Contains(r.findings, "note fpdu-over-segments") {
			t.Errorf("%s: %q", path, r.texts)
		}
	}
}
