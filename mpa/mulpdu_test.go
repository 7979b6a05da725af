package mpa_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves S01: an FPDU of MULPDU bytes fits into a segment wherever it begins.
func TestMULPDUFitsSegment(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for emss := 150; emss < 3000; emss++ {
			n := layout.MULPDU(emss, markers)
			w := mpa.NewWriter(markers, true)
			var out []byte
			for range 5 {
				at := w.Offset()
				if out = w.Append(out[:0], make([]byte, n)); len(out) > emss {
					t.Fatalf("EMSS %d, markers %v, offset %d: FPDU of %d bytes", emss, markers, at, len(out))
				}
			}
		}
	}
}

// Proves R07: MaxFPDU is the size of the largest FPDU, wherever its markers fall.
func TestMaxFPDU(t *testing.T) {
	largest := 0
	w := mpa.NewWriter(true, false)
	for range 200 {
		largest = max(largest, layout.Size(w.Offset(), layout.MaxULPDULength, true))
		w.Append(nil, make([]byte, 2))
	}
	if largest != layout.MaxFPDU {
		t.Errorf("the largest FPDU takes %d bytes, MaxFPDU is %d", largest, layout.MaxFPDU)
	}
}
