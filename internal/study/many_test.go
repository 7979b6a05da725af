package study

import (
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestManyAligned: with markers, MPA holds nothing of FPDUs that lie in segments, of one connection as of hundreds at
// the same time, on a path that loses and reorders. Of those that are cut it holds some, though none of them, of six
// segments each, need be whole ahead of order. Without IWARP_ALL there are few connections.
func TestManyAligned(t *testing.T) {
	t.Parallel()
	cfg := Config{Connections: 30, Octets: 32 << 10, Loss: .01, Reorder: .02, Delay: 500 * time.Microsecond, MTU: 1500, Seed: 5}
	if testrig.Everything() {
		cfg.Connections = 400
	}
	for i, w := range []Way{
		{Name: "aligned", Markers: true, Aligned: true, Ahead: true},
		{Name: "cut", Markers: true, ULPDU: 8192, Ahead: true},
	} {
		r, err := Run(t.Context(), cfg, w)
		testrig.Must(t, err)
		if (r.Held > 0 || r.HeldAll > 0) != (i == 1) || w.Aligned && r.Ahead == 0 || r.TCPHeldAll == 0 || r.Lost == 0 {
			t.Errorf("%s: %+v", w.Name, r)
		}
	}
}
