package engine

import (
	"fmt"
	"time"
)

// drainBytes is how many bytes count as progress of a close: fewer of them, within a
// CloseTimeout, and the close is given up. Requests that complete are progress too, as
// there are no more of them than were posted.
const drainBytes = 16 << 10

// drain is how far a graceful close has come. It goes on while there is progress: our
// own work goes out or completes, Reads that were asked for before the close are
// answered, the peer's Sends complete receives, of which there are no more than were
// posted, its payload arrives, the FIN is sent. Empty Writes, and Reads that the peer
// asks for after the close has begun, are none.
//
// A nil drain is that of a connection whose close has not begun.
type drain struct {
	bytes   int       // since the last progress
	reads   int       // the peer's Reads to be answered that were there before the close
	limitBy time.Time // zero: none
	beside  uint64    // bytes since the last progress that Moved has told of

	wait    time.Duration // a FIN is held back until the peer was quiet for so long
	heldBy  time.Time     // when the FIN is sent although the peer goes on sending; zero: it is not held back
	earlyBy time.Time     // a Read that has arrived by then may have been posted before the close
	readsBy time.Time     // without progress, no more Reads are taken then
	finAt   time.Time     // zero: no FIN is held back for Reads to come
	aloneBy time.Time     // readsBy, while Reads alone keep the close from its FIN; else zero
	moved   bool          // there was progress since the time was set
	active  bool          // the peer has sent something since the close began, or asked for a Read shortly before
	early   bool          // what arrives now was posted before, as far as can be told
	shut    bool          // no more Reads are taken
}

// closing reports whether BeginClose was called.
func (q *Machine) closing() bool { return q.drain != nil }

func (q *Machine) beginDrain(now time.Time, rtt time.Duration) {
	q.drain = &drain{reads: q.irrq.Len(), active: now.Sub(q.readAt) < readerTime}
	if q.IRD > 0 {
		q.drain.wait, q.drain.earlyBy = rtt, now.Add(rtt)
	}
	if q.cfg.CloseLimit > 0 {
		q.drain.limitBy = now.Add(q.cfg.CloseLimit)
	}
	q.limitDrain(now)
}

// limitDrain sets the times for a close that has just come on, or begun.
func (q *Machine) limitDrain(now time.Time) {
	q.closeBy = earlier(now.Add(q.cfg.CloseTimeout), q.drain.limitBy)
	q.drain.readsBy = earlier(now.Add(q.cfg.CloseTimeout/2), q.drain.limitBy)
}

// drained counts bytes that the drain has moved.
func (d *drain) drained(n int) {
	if d == nil {
		return
	}
	if d.bytes += n; d.bytes >= drainBytes {
		d.progress()
	}
}

func (d *drain) progress() {
	if d != nil {
		d.bytes, d.moved = 0, true
	}
}

// owesReads reports whether the peer's Reads of before the close are to be answered: then what is sent is progress.
func (d *drain) owesReads() bool { return d != nil && d.reads > 0 }

// asked takes note of a Read of the peer's, and answered of an answer.
func (d *drain) asked() {
	if d != nil && d.early {
		d.reads++
	}
}

func (d *drain) answered() {
	if d != nil {
		d.reads = max(d.reads-1, 0)
	}
}

// takesReads reports whether more Reads are taken.
func (d *drain) takesReads() bool { return d == nil || !d.shut }

// forgetTimes is called in a state in which no FIN is held back any more.
func (d *drain) forgetTimes() {
	if d != nil {
		d.finAt, d.aloneBy = time.Time{}, time.Time{}
	}
}

// renewDrain gives a close that has come on another CloseTimeout.
func (q *Machine) renewDrain(now time.Time) {
	if d := q.drain; d != nil && d.moved {
		d.moved = false
		q.limitDrain(now)
	}
}

// Moved reports bytes that a close waits for and that are not the connection's own, or not any more: where
// connections take turns on their way to the peer, those of the others, and ours as they leave. They are progress as
// any, but for the peer's Reads, which they have nothing to do with.
func (q *Machine) Moved(now time.Time, n uint64) {
	if q.state != RTS || !q.closing() {
		return
	}
	if q.drain.beside += n; q.drain.beside >= drainBytes {
		q.drain.beside = 0
		q.closeBy = earlier(now.Add(q.cfg.CloseTimeout), q.drain.limitBy)
	}
}

// drainTimedOut gives up a close.
func (q *Machine) drainTimedOut() {
	why, lost := "the peer did not close its half", ErrLost
	switch {
	case !q.mayTransmit() && !q.finished:
		why, lost = "the Initiator did not send its first FPDU", fmt.Errorf("%w: %w", q.neverSent(), ErrLost)
	case q.orq.Len() > 0:
		why = "the peer did not answer RDMA Reads or Atomic Operations"
	case !q.finished:
		why = "the peer did not take what was to be sent"
	}
	if q.closeBy.Equal(q.drain.limitBy) {
		q.abort(fmt.Errorf("the close took more than %v, and %s: %w: %w", q.cfg.CloseLimit, why, lost, ErrTimeout))
		return
	}
	q.abort(fmt.Errorf("%s within %v: %w: %w", why, q.cfg.CloseTimeout, lost, ErrTimeout))
}

// earlier returns the earlier of two times, of which the second may be zero: never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
