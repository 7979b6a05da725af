package engine

import "time"

// An RDMA Read that the peer had posted before it could know of our close deserves its
// answer, and after our FIN there is none. So a graceful close that has finished its own
// work holds the FIN back until nothing has come from the peer during one round trip: a
// Read Request that was on its way has arrived by then, also one after messages that
// are still arriving, and so has the next one of a peer that waits for a response first.
// RFC 5040, section 6.2 has the ULPs agree on the end; this is for those that do not.
//
// How long the round trip is counted depends on what is known of the peer: one that has sent
// something since the close began, or asked for a Read shortly before, may well ask for
// another, and one that is in the middle of a message or an FPDU has more to send for certain.
//
// A peer that sends without end, or does not end its message, holds the FIN back for half of CloseTimeout.
//
// A peer that reads without end gains little: Reads that come after the first round trip
// are no progress of the close, and when there was none for half of CloseTimeout no more
// of them are taken. Those that were taken are answered, and the FIN follows.

// holds reports whether the FIN of a close is held back, all our work being done.
func (q *Machine) holds(now time.Time) bool {
	d := q.drain
	d.aloneBy = time.Time{}
	if d.shut || q.finished || q.peerClosed {
		d.finAt = time.Time{}
		return false
	}
	if d.finAt.IsZero() {
		q.hold(now)
	}
	if now.Before(d.finAt) {
		return true
	}
	d.finAt = time.Time{}
	return false
}

// activeWait is how much longer than a round trip a peer is waited for that has sent something
// since the close began, or asked for a Read within readerTime before: its program and its system
// take some time until its next Read, which may have waited for our response, is on its way.
const (
	activeWait = 20 * time.Millisecond
	readerTime = 10 * time.Millisecond
)

// hold sets the time at which a FIN that is held back is sent, if nothing comes until then.
func (q *Machine) hold(now time.Time) {
	d := q.drain
	wait := d.wait
	if d.heldBy.IsZero() {
		d.heldBy = now.Add(q.cfg.CloseTimeout / 2)
	}
	switch {
	case wait == 0: // nothing is known
	case q.inFPDU || q.ahead.segments() > 0 || q.shown.lacks() || q.partial != [2]bool{}:
		wait = d.heldBy.Sub(now)
	case d.active:
		wait += activeWait
	}
	d.finAt = earlier(earlier(now.Add(wait), d.heldBy), d.readsBy)
}

// RoundTrip says how long one takes, where that was not known when the close began and what comes now tells. It is to
// be called before that is taken in.
func (q *Machine) RoundTrip(now time.Time, rtt time.Duration) {
	if d := q.drain; d != nil && q.IRD > 0 && d.wait == 0 {
		d.wait, d.earlyBy = rtt, now.Add(rtt)
	}
}

// stirred takes note that bytes have come from the peer.
func (d *drain) stirred(now time.Time) {
	if d != nil {
		d.early, d.active = now.Before(d.earlyBy), true
		d.finAt = time.Time{}
	}
}

// FINHeldUntil returns when a FIN that is held back is sent, if the peer asks for nothing until
// then; zero if none is.
func (q *Machine) FINHeldUntil() time.Time {
	if q.drain == nil {
		return time.Time{}
	}
	return q.drain.finAt
}

// Unsent reports that the LLP has bytes of ours that it has not sent: the peer's next
// Read may wait for them, so that a FIN that is held back waits for another round trip.
func (q *Machine) Unsent(now time.Time) {
	if !q.FINHeldUntil().IsZero() {
		q.hold(now)
	}
}

// goOnDraining goes on with a close that has work left: no FIN waits for silence. No more Reads are taken when they
// alone have kept it from its FIN for long enough.
func (q *Machine) goOnDraining(now time.Time) {
	d := q.drain
	if d == nil {
		return
	}
	d.finAt, d.heldBy, d.aloneBy = time.Time{}, time.Time{}, time.Time{}
	ours := q.sq.Len() > 0 || q.orq.Len() > 0 || q.rtr != 0
	if d.shut || ours || q.irrq.Len() == 0 {
		return
	}
	if d.shut = !now.Before(d.readsBy); !d.shut {
		d.aloneBy = d.readsBy
	}
}
