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
	if q.drain.shut || q.finished || q.peerClosed {
		q.finAt = time.Time{}
		return false
	}
	if q.finAt.IsZero() {
		q.hold(now)
	}
	if now.Before(q.finAt) {
		return true
	}
	q.finAt = time.Time{}
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
	d := &q.drain
	wait := d.wait
	if d.heldBy.IsZero() {
		d.heldBy = now.Add(q.cfg.CloseTimeout / 2)
	}
	switch {
	case wait == 0: // nothing is known
	case q.inFPDU || len(q.ahead.held) > 0 || q.shown.end != 0 || q.partial != [2]bool{}:
		wait = d.heldBy.Sub(now)
	case d.active:
		wait += activeWait
	}
	q.finAt = earlier(earlier(now.Add(wait), d.heldBy), d.readsBy)
}

// RoundTrip says how long one takes, where that was not known when the close began and what comes now tells. It is to
// be called before that is taken in.
func (q *Machine) RoundTrip(now time.Time, rtt time.Duration) {
	if d := &q.drain; q.closing && q.IRD > 0 && d.wait == 0 {
		d.wait, d.earlyBy = rtt, now.Add(rtt)
	}
}

// stirred takes note that bytes have come from the peer.
func (q *Machine) stirred() {
	q.drain.active = q.closing
	q.finAt = time.Time{}
}

// FINHeldUntil returns when a FIN that is held back is sent, if the peer asks for nothing until
// then; zero if none is.
func (q *Machine) FINHeldUntil() time.Time { return q.finAt }

// Unsent reports that the LLP has bytes of ours that it has not sent: the peer's next
// Read may wait for them, so that a FIN that is held back waits for another round trip.
func (q *Machine) Unsent(now time.Time) {
	if !q.finAt.IsZero() {
		q.hold(now)
	}
}

// limitReads takes no more Reads when they alone have kept a close from its FIN for long
// enough.
func (q *Machine) limitReads(now time.Time) {
	d := &q.drain
	ours := q.sq.Len() > 0 || q.orq.Len() > 0 || q.rtr != 0
	if !q.closing || d.shut || ours || q.irrq.Len() == 0 {
		return
	}
	if d.shut = !now.Before(d.readsBy); !d.shut {
		q.readsBy = d.readsBy
	}
}
