package mpa_test

import (
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// Proves S01, S02: the formulas of RFC 5044, Section 4.5, and the bounds of Section 3.
func TestMULPDU(t *testing.T) {
	for _, c := range []struct {
		emss    int
		markers bool
		want    int
	}{
		{1460, false, 1454},
		{1460, true, 1460 - (6 + 4*3)},
		{1448, false, 1442},
		{1461, false, 1461 - 7},
		{1462, false, 1462 - 8},
		{1463, false, 1463 - 9},
		{512, true, 512 - (6 + 4)},
		{513, true, 513 - (6 + 8 + 1)},
		{8948, false, 8942},
		{8948, true, 8948 - (6 + 4*18)},
		{0, false, 1454},  // not known
		{-1, true, 1442},  // not known
		{1, false, 128},   // "MUST NOT shrink the MULPDU below 128 octets"
		{133, false, 128}, // 126 by the formula
		{138, true, 128},  // 126 by the formula
		{136, false, 130}, // the formula again
		{65483, false, 64768},
		{65483, true, 64768},
		{64776, false, 64768},
		{64773, false, 64773 - 7},
		{1 << 30, true, 64768},
	} {
		if got := mpa.MULPDU(c.emss, c.markers); got != c.want {
			t.Errorf("MULPDU(%d, %v) = %d, want %d", c.emss, c.markers, got, c.want)
		}
	}
}

// Proves S02: no more than 64768 octets are posted.
func TestCheckULPDU(t *testing.T) {
	if err := mpa.CheckULPDU(mpa.MaxMULPDU); err != nil {
		t.Errorf("64768 octets: %v", err)
	}
	if err := mpa.CheckULPDU(mpa.MaxMULPDU + 1); err == nil {
		t.Error("64769 octets: no error")
	}
}

// Proves S01: an FPDU of MULPDU octets fits into a segment wherever it begins.
func TestMULPDUFitsSegment(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for emss := 150; emss < 3000; emss++ {
			n := mpa.MULPDU(emss, markers)
			w := mpa.NewWriter(markers, true)
			var out []byte
			for range 5 {
				if size := w.Size(n); size > emss {
					t.Fatalf("EMSS %d, markers %v, offset %d: FPDU of %d octets", emss, markers, w.Offset(), size)
				}
				out = w.Append(out[:0], make([]byte, n))
			}
		}
	}
}

// Proves S06: Room is the largest ULPDU that fits what is left of a segment.
func TestWriterRoom(t *testing.T) {
	for _, markers := range []bool{false, true} {
		w := mpa.NewWriter(markers, false)
		for range 300 {
			for octets := range 1200 {
				checkRoom(t, &w, octets)
			}
			w.Append(nil, make([]byte, 2))
		}
	}
}

func checkRoom(t *testing.T, w *mpa.Writer, octets int) {
	t.Helper()
	n := w.Room(octets)
	if n > 0 && w.Size(n) > octets {
		t.Fatalf("offset %d: Room(%d) = %d, which takes %d", w.Offset(), octets, n, w.Size(n))
	}
	if w.Size(n+1) <= octets {
		t.Fatalf("offset %d: Room(%d) = %d, but %d takes %d", w.Offset(), octets, n, n+1, w.Size(n+1))
	}
}

// Proves R07: MaxFPDU is the size of the largest FPDU, wherever its markers fall.
func TestMaxFPDU(t *testing.T) {
	largest := 0
	w := mpa.NewWriter(true, false)
	for range 200 {
		largest = max(largest, w.Size(mpa.MaxULPDULength))
		w.Append(nil, make([]byte, 2))
	}
	if largest != mpa.MaxFPDU {
		t.Errorf("the largest FPDU takes %d octets, MaxFPDU is %d", largest, mpa.MaxFPDU)
	}
}
