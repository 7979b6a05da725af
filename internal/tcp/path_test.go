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

// A trip is a connection with an estimate of its own.
type trip struct {
	recorder
	estimate time.Duration
	unsent   bool
}

func (c *trip) Unsent() bool { return c.unsent }

func (c *trip) RoundTrip() time.Duration { return c.estimate }

// TestTrip asks a TCP in user space for its round trip, and whether it has sent everything, also below another
// connection.
func TestTrip(t *testing.T) {
	for _, estimate := range []time.Duration{0, 7 * time.Millisecond} {
		for _, unsent := range []bool{false, true} {
			own := &trip{estimate: estimate, unsent: unsent}
			for _, c := range []*Conn{New(own), New(encrypted{Conn: own})} {
				if p, ok := c.Path(); p.Longest() != estimate || ok != (estimate > 0) || p.Unsent != unsent || !p.Old {
					t.Errorf("%+v, %t of %v", p, ok, estimate)
				}
			}
		}
	}
}
