package engine

import (
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
)

// PostSend appends work to the Send Queue, whose Shape was checked. In Idle it waits for the connection.
func (q *Machine) PostSend(w *SendWork) error {
	if err := q.postable(); err != nil {
		return err
	}
	if q.closing() || q.halving || q.strict {
		return fmt.Errorf("the connection is being closed: %w", ErrBadState)
	}
	switch asked := w.Op.Info().Asked; {
	case q.peerClosed && asked != "":
		return fmt.Errorf("%s that cannot be answered: %w", asked, ErrPeerClosed)
	case q.state == RTS && q.RDMAPVersion == 0 && w.Op.Extension():
		return ErrNoExtensions
	case q.state == RTS && q.ORD == 0 && w.Op == OpRead:
		return ErrNoReads
	case q.state == RTS && q.ORD == 0 && asked != "":
		return fmt.Errorf("%s, which counts as an RDMA Read: %w", asked, ErrNoReads)
	case q.sq.Full():
		return ErrQueueFull
	}
	if _, err := q.checkPrefix(w, w.SGL.length()); err != nil && q.state == RTS {
		return err
	}
	if q.Mute() {
		q.stats.Held++
	}
	q.sq.push(w)
	q.answers(w.Op)
	return nil
}

// TakeBackSends takes out what was posted from a position of the Send Queue on, as [QP.Posted] had it, of which
// nothing has begun.
func (q *Machine) TakeBackSends(from uint64) {
	for q.sq.Tail() > from {
		q.sq.pull()
		if q.Mute() {
			q.stats.Held--
		}
	}
}

// PostReceive appends work to the QP's own Receive Queue. In Idle too, so that
// buffers are there before the peer's first message is.
func (q *Machine) PostReceive(w *RecvWork) error {
	if err := q.postable(); err != nil {
		return err
	}
	if q.cfg.Source != nil {
		return fmt.Errorf("the QP receives from a Shared Receive Queue, post to that: %w", ErrBadState)
	}
	if q.peerClosed {
		return fmt.Errorf("nothing more can be received: %w", ErrPeerClosed)
	}
	if q.rq.Full() {
		return ErrQueueFull
	}
	*q.rq.Add() = *w
	return nil
}

// TakeBackReceive takes a receive out of the QP's own Receive Queue, whose cookie it
// is, unless a message has begun to fill it, or one that is to be received after it.
func (q *Machine) TakeBackReceive(cookie any) bool {
	settled := q.queues[rdmap.QNSend].Reach()
	if q.taken {
		settled--
	}
	return q.rq.remove(cookie, max(settled, 0))
}

// Posted returns the position after the last request of the Send Queue, and Begun
// whether all requests before a position have been built or are complete.
func (q *Machine) Posted() uint64 { return q.sq.Tail() }

// Begun is described with Posted.
func (q *Machine) Begun(pos uint64) bool { return q.sq.next >= pos }

func (q *Machine) postable() error {
	if q.state == Idle || q.state == RTS {
		return nil
	}
	if q.cause != nil {
		return fmt.Errorf("QP in state %v: %w (%w)", q.state, ErrBadState, q.cause)
	}
	return fmt.Errorf("QP in state %v: %w", q.state, ErrBadState)
}

// Outstanding returns how many requests of the Send Queue, and of the QP's own
// Receive Queue, are not complete, or have completions that were not handed over.
func (q *Machine) Outstanding() (sends, receives int) {
	sends, receives = q.sq.Len()+len(q.done.items)-int(q.doneReceives), q.rq.Len()
	if q.cfg.Source == nil {
		receives += int(q.doneReceives)
	}
	if q.taken && q.cfg.Source == nil {
		receives++
	}
	return sends, receives
}

// completeSend reports the end of a Send Queue entry. Successful unsignaled work
// is not reported.
func (q *Machine) completeSend(e *sendEntry) {
	if e.Unsignaled && e.status == StatusSuccess {
		return
	}
	c := q.done.next()
	c.ID, c.Op, c.Status, c.Cookie = e.ID, e.Op, e.status, e.Cookie
	if e.status == StatusSuccess {
		c.Length = e.length
		if e.Op.Info().Result != 0 {
			c.Original = e.Atomic.Data
		}
	}
}

// retire completes, in the order of posting, all entries that are done
// (RFC 5040, section 5.5: operations complete locally in ULP order).
func (q *Machine) retire() {
	for q.sq.Head() < q.sq.next {
		e := q.sq.Front()
		if e.phase == phaseBuilt && e.end <= q.sent && !q.awaitsConfirmation(q.sq.Head()) {
			q.builtDone(e)
		}
		if e.phase != phaseDone {
			return
		}
		q.completeSend(e)
		q.release(e)
		q.sq.Drop()
		q.carriedOut = true
		q.drain.progress()
	}
}

// builtDone ends a request that waits for nobody to confirm it. Where one before it has failed, programs take it that
// nothing after that was carried out (RDMA verbs, 8): it is flushed, though it was sent.
func (q *Machine) builtDone(e *sendEntry) {
	e.phase = phaseDone
	if q.confirm.lost && e.status == StatusSuccess {
		e.status = StatusFlushed
	}
}

// release drops the slot's references; its own memory stays for the next.
func (q *Machine) release(e *sendEntry) {
	if e.local != nil {
		e.local.forget()
	}
	inline, local := e.inline[:0], e.local
	*e = sendEntry{inline: inline, local: local}
}

// flush ends all work that is left (RDMA verbs 6.2, Error and Closing). It
// waits until the socket holds no reference to the consumer's memory.
func (q *Machine) flush() {
	if q.inFlight {
		return
	}
	q.flushSends()
	q.flushReceives()
}

func (q *Machine) flushSends() {
	for q.sq.Len() > 0 {
		e := q.sq.Front()
		if e.status == StatusSuccess && e.phase != phaseDone {
			e.status = StatusFlushed
		}
		q.completeSend(e)
		q.release(e)
		q.sq.Drop()
	}
	q.sq.next = q.sq.Head()
}

func (q *Machine) flushReceives() {
	if q.taken {
		q.completeReceive(StatusFlushed)
	}
	for q.cfg.Source == nil && q.rq.Len() > 0 && q.takeReceive() {
		q.completeReceive(StatusFlushed)
	}
}

// completeReceive ends the receive in use. What it returns is for the caller to fill in, at once.
func (q *Machine) completeReceive(s Status) *Completion {
	if q.current.discards {
		return q.discardReceive()
	}
	c := q.done.next()
	c.ID, c.Op, c.Status, c.Cookie = q.current.ID, OpReceive, s, q.current.Cookie
	q.doneReceives++
	q.unanswered++
	*q.current, q.taken = RecvWork{}, false
	return c
}

// discardReceive is completeReceive for a message that nobody receives.
func (q *Machine) discardReceive() *Completion {
	q.stats.Discarded++
	*q.current, q.taken = RecvWork{}, false
	return new(Completion)
}
