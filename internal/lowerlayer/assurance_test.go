package lowerlayer

import (
	"testing"
	"time"
)

// TestAssurancePause is half a round trip, if that is known and short.
func TestAssurancePause(t *testing.T) {
	const ms = time.Millisecond
	for rtt, want := range map[time.Duration]time.Duration{-ms: 100 * ms, 0: 100 * ms, ms: ms / 2,
		199 * ms: 199 * ms / 2, 201 * ms: 100 * ms, time.Hour: 100 * ms} {
		if got := AssurancePause(rtt); got != want {
			t.Errorf("%v: %v, want %v", rtt, got, want)
		}
	}
}
