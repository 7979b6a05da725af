package iwarp

import "testing"

// TestMayAlign: FPDUs may come to be aligned where nothing else was asked for, or just that.
func TestMayAlign(t *testing.T) {
	for f, want := range map[FPDUs]bool{FPDUsDefault: true, FPDUsAligned: true,
		FPDUsUnaligned: false, FPDUsLarge: false} {
		if f.mayAlign() != want {
			t.Errorf("%v: %t", f, !want)
		}
	}
}
