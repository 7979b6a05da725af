package tcp

import (
	"testing"
	"time"
)

// TestLongest counts the variation of a path four times.
func TestLongest(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ rtt, variation, want time.Duration }{
		{0, 0, 0}, {20 * ms, 0, 20 * ms}, {20 * ms, 3 * ms, 32 * ms}, {ms, 10 * ms, 41 * ms},
	} {
		if got := (Path{RTT: c.rtt, Var: c.variation}).Longest(); got != c.want {
			t.Errorf("%v, varying by %v: %v, want %v", c.rtt, c.variation, got, c.want)
		}
	}
}
