package layout_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// Proves S01, S02, S06: the formulas of RFC 5044, section 4.5, and the bounds of Section
// 3. It follows the EMSS alone: a sender MAY shrink the MULPDU to what is left of a
// segment, and this one does not.
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
		{0, false, 1454},      // not known
		{-1, true, 1442},      // not known
		{1, false, 128},       // "MUST NOT shrink the MULPDU below 128 bytes"
		{133, false, 128},     // 126 by the formula
		{138, true, 128},      // 126 by the formula
		{136, false, 130},     // the formula again
		{65483, false, 64766}, // without a pad, as all values of the formula
		{65483, true, 64766},
		{64776, false, 64766},
		{64773, false, 64773 - 7},
		{1 << 30, true, 64766},
	} {
		if got := layout.MULPDU(c.emss, c.markers); got != c.want {
			t.Errorf("MULPDU(%d, %v) = %d, want %d", c.emss, c.markers, got, c.want)
		}
	}
}

// FPDUs that fill their segments need no pad, however large the EMSS is: some receivers do not get on with one that TCP
// cuts.
func TestMULPDUHasNoPad(t *testing.T) {
	for emss := 256; emss < 1<<17; emss++ {
		for _, markers := range []bool{false, true} {
			if n := layout.MULPDU(emss, markers); layout.PadLen(n) != 0 {
				t.Fatalf("MULPDU(%d, %v) = %d, and its FPDU has a pad", emss, markers, n)
			}
		}
	}
}

// Proves S06: the room for an FPDU in what is left of a TCP segment is what it takes, and
// not one byte more would fit, wherever markers fall.
func TestRoom(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for offset := uint64(0); offset < 2*layout.MarkerInterval; offset += 4 {
			for left := 0; left < 1600; left++ {
				n := layout.Room(offset, left, markers)
				if n >= 0 && layout.Size(offset, n, markers) > left {
					t.Fatalf("offset %d, markers %v: an FPDU around %d bytes takes %d, and %d are left",
						offset, markers, n, layout.Size(offset, n, markers), left)
				}
				if layout.Size(offset, max(n+1, 0), markers) <= left {
					t.Fatalf("offset %d, markers %v: an FPDU around %d bytes would fit into %d",
						offset, markers, n+1, left)
				}
			}
		}
	}
}
