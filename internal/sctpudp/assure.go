package sctpudp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

const (
	// assurances is how often our SACK of what a peer whose half has ended waits for goes: lowerlayer.AssurancePause
	// says why that many, and how far apart.
	assurances = 4
	leaveTime  = time.Second // within which pion has a SACK leave, if it does at all
)

// Assure tells the peer several times what has come. It returns when the last of it has left, or the association is
// over.
func (c *Conn) Assure() {
	for i := range assurances {
		if i > 0 && c.path.endsWithin(lowerlayer.AssurancePause(c.measured()), nil) {
			return
		}
		// pion answers nothing any more; a peer that has sent SHUTDOWN has all acknowledgements
		if c.path.cause.Load() != nil {
			return
		}
		if c.path.endsWithin(leaveTime, c.path.arrived.again()) {
			return
		}
	}
}

// endsWithin waits for some time, and not longer than until enough is closed. It reports whether the association has
// ended before.
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
