package conform

import (
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// quietTime is for how long a case watches that the peer does not do what it must not. What the peer
// does at once takes a round trip to be seen.
func (s *session) quietTime() time.Duration { return s.opts.Quiet + s.path }

// reached takes note of the round trip of a connection: as the system's TCP has measured it, or what
// the peer needed to be reached, or to answer the Request before the first case, as far as these are known. Proxies
// and tunnels on the way show in the answer only.
func (s *session) reached(conn net.Conn, took time.Duration) {
	p, _ := tcp.PathOf(conn)
	s.far(max(took, p.RTT))
}

func (s *session) far(trip time.Duration) {
	s.path = min(max(s.path, s.opts.roundTrip, trip), s.opts.Timeout)
	s.opts.longest = max(s.opts.longest, s.path)
}

// answeredIn returns how long after our first bytes those of the peer came; zero if none have come, or only a part of
// its answer: that was waited for, and not the path's to take so long.
func (r *Result) answeredIn() time.Duration {
	if r.partialAnswer() != "" {
		return 0
	}
	sent, asked := time.Duration(0), false
	for _, e := range r.Dialogue {
		switch {
		case e.Kind == Sent && !asked:
			sent, asked = e.At, true
		case e.Kind == Received && asked:
			return e.At - sent
		}
	}
	return 0
}

// noteRoundTrip has the summary say that the path is longer than the quiet time.
func (o *Options) noteRoundTrip(sum *Summary) {
	if o.longest > o.Quiet {
		sum.RoundTrip = o.longest
	}
}
