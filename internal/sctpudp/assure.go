package sctpudp

import "time"

// A peer whose half has ended waits for our SACK of it. The system's SCTP would go on to answer what the peer sends again when
// that is lost; here nobody does once the program has ended. So before that may be, the SACK goes several times: all of them
// are lost less often than once in a million times on a path that loses 3 % of the packets. They are spaced, as what is lost on a path is often lost
// together, by half a round trip, and not so far that who closes would notice.
const (
	assurances = 4
	maxPause   = 100 * time.Millisecond
	leaveTime  = time.Second // within which pion has a SACK leave, if it does at all
)

// Assure tells the peer several times what has come. It returns when the last of it has left, or the association is over.
func (c *Conn) Assure() {
	for i := range assurances {
		if i > 0 && c.path.endsWithin(c.pause(), nil) {
			return
		}
		if c.path.cause.Load() != nil { // pion answers nothing any more; a peer that has sent SHUTDOWN has all acknowledgements
			return
		}
		if c.path.endsWithin(leaveTime, c.path.arrived.again()) {
			return
		}
	}
}

// pause is half a round trip, if that is known and short.
func (c *Conn) pause() time.Duration {
	rtt := time.Duration(c.assoc.SRTT() * float64(time.Millisecond))
	if rtt <= 0 {
		return maxPause
	}
	return min(rtt/2, maxPause)
}

// endsWithin waits for some time, and not longer than until enough is closed. It reports whether the association has ended before.
func (p *path) endsWithin(d time.Duration, enough <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.done:
		return true
	case <-enough:
	case <-late.C:
	}
	return false
}
