package mpa_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// TestDepthString prints depths as a person reads them, and as numbers where asked to.
func TestDepthString(t *testing.T) {
	for depth, want := range map[mpa.Depth]string{
		0: "0 0", 7: "7 7", mpa.MaxDepth: "16382 16382", mpa.NoNegotiation: "not negotiated 16383",
	} {
		if got := fmt.Sprintf("%v %d", depth, depth); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
