package mpa_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// Where the beginning of Full Operation is not known, Shift says where the markers are: an
// FPDU is judged by that, and reported where its bytes are.
//
// Proves F08, F09, R01.
func TestFramingShift(t *testing.T) {
	const at = 1000 // the stream offset of the first FPDU's first byte
	framing := mpa.Framing{Markers: true, CRC: true, Shift: 1<<64 - at}
	w := mpa.NewWriter(true, true)
	first := w.Append(nil, make([]byte, 90))
	second := w.Append(nil, make([]byte, 900))
	for offset, b := range map[uint64][]byte{at: first, at + uint64(len(first)): second} {
		if err := framing.Verify(offset, b, len(b)); err != nil {
			t.Errorf("at %d: %v", offset, err)
		}
	}
	uncovered := layout.AppendCRC(bytes.Clone(first[:len(first)-4]), layout.CRC32C(0, first[4:len(first)-4]))
	wantVerify(t, framing, at, uncovered, "bad CRC at stream offset 1096: ", "without the marker in front")
	framing.CRC = false
	third := w.Append(nil, make([]byte, 1500))
	third[2048-1012+2] ^= 0x80 // of the marker at 2048
	wantVerify(t, framing, at+1012, third, "marker 3 of 3 in the FPDU at 2012", "")
	none := bytes.Clone(first)
	none[3] = 8
	wantVerify(t, framing, at, none, "bad marker at stream offset 1000: marker 1 of 1 in the FPDU at 1000",
		"does not begin with a marker")
}

// A wrong marker is counted among those of its FPDU.
//
// Proves F08, F09.
func TestMarkerCount(t *testing.T) {
	framing := mpa.Framing{Markers: true}
	for _, c := range []struct {
		before, size int // bytes on the stream: in front of the FPDU, and of the FPDU
		marker       int // the wrong one, in the FPDU
		want         string
	}{
		{100, 412, 0, ""}, // the marker after it is the next FPDU's
		{100, 420, 412, "marker 1 of 1 in the FPDU at 100"},
		{100, 924, 412, "marker 1 of 1 in the FPDU at 100"},
		{100, 932, 924, "marker 2 of 2 in the FPDU at 100"},
		{512, 512, 0, "marker 1 of 1 in the FPDU at 512"},
		{512, 520, 512, "marker 2 of 2 in the FPDU at 512"},
	} {
		w := mpa.NewWriter(true, true)
		before := 0
		for ; layout.Size(0, before, true) < c.before; before += 4 {
		}
		w.Append(nil, make([]byte, before))
		n := 0
		for ; layout.Size(w.Offset(), n, true) < c.size; n += 4 {
		}
		offset := w.Offset()
		b := w.Append(nil, make([]byte, n))
		if offset != uint64(c.before) || len(b) != c.size {
			t.Fatalf("%+v: %d bytes at %d", c, len(b), offset)
		}
		if c.want == "" {
			if err := framing.Verify(offset, b, len(b)); err != nil {
				t.Error(err)
			}
			continue
		}
		b[c.marker+2] ^= 0x80
		wantVerify(t, framing, offset, b, c.want, "")
	}
}

// A peer that leaves out markers is told so, wherever it does.
//
// Proves F11.
func TestMarkersLeftOut(t *testing.T) {
	framing := mpa.Framing{Markers: true, CRC: true}
	w := mpa.NewWriter(false, true)
	b := w.Append(nil, make([]byte, 10)) // read with a marker it would be 12 bytes, and shorter
	if err := framing.Verify(0, b, 12); err == nil || !strings.Contains(err.Hint, "the FPDU is right without markers") {
		t.Error(err)
	}
	b = w.Append(nil, make([]byte, 600))
	if err := framing.Verify(400, append(b, 0, 0, 0, 0), len(b)+4); err == nil ||
		!strings.Contains(err.Hint, "the FPDU is right without markers") {
		t.Error(err)
	}
}

// wantVerify expects an FPDU to be refused.
func wantVerify(t *testing.T, framing mpa.Framing, offset uint64, b []byte, text, hint string) {
	t.Helper()
	err := framing.Verify(offset, b, len(b))
	if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Hint, hint) {
		t.Errorf("got %v, want %q and %q", err, text, hint)
	}
}
