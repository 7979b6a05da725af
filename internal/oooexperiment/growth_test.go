package oooexperiment

import (
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestGrowth: what MPA holds grows with the size of FPDUs that are cut, and without markers with the window. With
// markers, and of FPDUs that lie in segments, it is nothing in any window that is no smaller than what is on its way.
//
// draft-culley-iwarp-mpa-03, section 13.1.2, has the buffer of FPDUs that are not aligned grow with their size and with
// the number of connections, and that of TCP with bandwidth and delay, which is what a window has to hold.
func TestGrowth(t *testing.T) {
	t.Parallel()
	cfg := Config{Connections: 10, Bytes: 1 << 18, Loss: .005, Reorder: .02,
		Delay: 500 * time.Microsecond, MTU: 1500, Seed: 2}
	held := func(w Way) int {
		r, err := Run(testrig.Within(t), cfg, w)
		testrig.Must(t, err)
		if r.TCPHeldAll == 0 || r.Lost == 0 {
			t.Errorf("%s: %+v", w.Name, r)
		}
		return r.HeldAll
	}
	for _, c := range []struct{ small, large Way }{
		{growth(0, 2<<10, true), growth(0, 32<<10, true)},
		{growth(16<<10, 0, false), growth(256<<10, 0, false)},
	} {
		if small, large := held(c.small), held(c.large); small == 0 || large < 3*small {
			t.Errorf("%s: %d bytes held; %s: %d", c.small.Name, small, c.large.Name, large)
		}
	}
	if n := held(growth(256<<10, 0, true)); n > 1500 { // its edge may cut an FPDU
		t.Errorf("aligned, with markers: %d bytes held", n)
	}
}

// TestGrowthRows: each row of the command is another, and is found by its name.
func TestGrowthRows(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range slices.Concat(Growth, Ways) {
		r := Result{Way: w.Name, Reckoned: Reckoned{TCP: 1, NotAligned: 2, Aligned: 3}}
		want := map[bool]int{false: 2, true: 3}[w.Aligned]
		if !w.Ahead {
			want = 1
		}
		if got := r.ReckonedBuffer(); got != want {
			t.Errorf("%s: %d is reckoned, want %d", w.Name, got, want)
		}
		seen[w.Name] = true
	}
	if !seen["32 KiB FPDUs, no markers"] || !seen["256 KiB window, markers"] {
		t.Errorf("there are %v", seen)
	}
}
