package layout_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// inMarker reports whether the byte at a stream offset is a marker's, by the definition:
// there is one at every 512th byte.
func inMarker(offset uint64) bool { return offset%512 < 4 }

// Proves F07, F12: content is what is left of the stream without its markers, as much of it
// as there is and is wanted, wherever it begins and ends.
func TestAppendContent(t *testing.T) {
	stream := make([]byte, 1600)
	for i := range stream {
		stream[i] = byte(i%251) + 1
	}
	for offset := uint64(500); offset < 1040; offset++ {
		if inMarker(offset) && offset%512 > 0 {
			continue // an FPDU neither begins nor goes on within a marker
		}
		for _, size := range []int{0, 1, 3, 4, 5, 8, 507, 508, 509, 512, 516, 1100} {
			for _, n := range []int{0, 1, 4, 508, 509, 1016, 1600} {
				var want []byte
				for i := 0; i < size && len(want) < n; i++ {
					if !inMarker(offset + uint64(i)) {
						want = append(want, stream[i])
					}
				}
				got := layout.AppendContent([]byte("x"), offset, stream[:size], n)
				if !bytes.Equal(got[1:], want) || got[0] != 'x' {
					t.Fatalf("%d of %d bytes at %d: %d bytes, want %d", n, size, offset, len(got)-1, len(want))
				}
			}
		}
	}
}

// Proves F01, F09: ULPDU_Length is the first two bytes of an FPDU, or follows the marker in
// front of it; it is known when both are there.
func TestMeasure(t *testing.T) {
	b := []byte{0x12, 0x34, 0x56, 0x78, 0x03, 0xe8, 0xff}
	for _, c := range []struct {
		offset  uint64
		markers bool
		lead    int
		length  int
	}{
		{0, false, 0, 0x1234}, {4, false, 0, 0x1234}, {512, false, 0, 0x1234},
		{0, true, 4, 1000}, {512, true, 4, 1000}, {4, true, 0, 0x1234}, {508, true, 0, 0x1234},
	} {
		if got := layout.LeadLen(c.offset, c.markers); got != c.lead {
			t.Errorf("%+v: %d bytes in front", c, got)
		}
		for n := range len(b) + 1 {
			length, size, ok := layout.Measure(c.offset, b[:n], c.markers)
			if ok != (n >= c.lead+2) || ok && (length != c.length || size != layout.Size(c.offset, length, c.markers)) {
				t.Errorf("%+v, %d bytes: %d, %d, %t", c, n, length, size, ok)
			}
		}
	}
}

// Proves F08, F09: a marker within an FPDU tells the distance from ULPDU_Length, and one in
// front of it is 0.
func TestPointer(t *testing.T) {
	for _, c := range []struct {
		header, marker uint64
		want           uint16
	}{
		{516, 512, 0}, {4, 0, 0}, {500, 512, 12}, {516, 1024, 508}, {1 << 40, 1<<40 + 0xfffc, 0xfffc},
	} {
		if got := layout.Pointer(c.header, c.marker); got != c.want {
			t.Errorf("ULPDU_Length at %d, marker at %d: %d, want %d", c.header, c.marker, got, c.want)
		}
	}
}

// Proves F04: the CRC field is the last four bytes, and covers all before them.
func TestCRCValid(t *testing.T) {
	b := layout.AppendCRC([]byte("nine bytes"), layout.CRC32C(0, []byte("nine bytes")))
	if !layout.CRCValid(b) || !layout.CRCValid(layout.AppendCRC(nil, 0)) {
		t.Error("not valid")
	}
	for i := range b {
		b[i] ^= 0x10
		if layout.CRCValid(b) {
			t.Errorf("byte %d changed, and valid", i)
		}
		b[i] ^= 0x10
	}
}
