package engine

import (
	"fmt"
	"time"
)

// afterEnd is for how long messages wait at most, if RNR.Wait bounds that, when the peer has closed its half: a consumer
// that has no use for them learns of the end then.
const afterEnd = time.Second

// watchReady sets the time by which the consumer is to have posted a receive for what waits. It begins anew with each
// message that is taken.
func (q *Machine) watchReady(now time.Time) {
	u, wait := &q.rnr, q.cfg.RNR.Wait
	took := u.took
	u.took = false
	if wait <= 0 || len(u.segments) == 0 {
		q.readyBy = time.Time{}
		return
	}
	if u.ended {
		wait = min(wait, afterEnd)
	}
	if by := now.Add(wait); took || q.readyBy.IsZero() || by.Before(q.readyBy) {
		q.readyBy = by
	}
}

// readyTimedOut ends the connection of a consumer that does not post receives.
func (q *Machine) readyTimedOut() {
	q.readyBy = time.Time{}
	q.refuseRNR(fmt.Sprintf("none was posted in time (RNRPolicy.Wait is %v)", q.cfg.RNR.Wait), ErrTimeout)
}
