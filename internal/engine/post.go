package engine

import "fmt"

// PostSend appends work to the Send Queue. In Idle it waits for the connection.
func (q *QP) PostSend(w *SendWork) error {
	if err := q.postable(); err != nil {
		return err
	}
	if q.draining || q.halving {
		return fmt.Errorf("the connection is being closed: %w", ErrBadState)
	}
	switch {
	case q.sq.full():
		return ErrQueueFull
	case len(w.Inline) > q.cfg.MaxInline:
		return ErrInline
	case sglLength(w.SGL[:w.NumSGE]) > MaxMessage:
		return ErrTooLong
	case w.Op == OpRead && w.NumSGE > 1:
		return ErrManySinks
	}
	q.sq.push(w)
	return nil
}

// PostReceive appends work to the QP's own Receive Queue. In Idle too, so that
// buffers are there before the peer's first message is.
func (q *QP) PostReceive(w *RecvWork) error {
	if err := q.postable(); err != nil {
		return err
	}
	if q.cfg.Source != nil {
		return fmt.Errorf("the QP receives from a Shared Receive Queue: %w", ErrBadState)
	}
	if q.rq.full() {
		return ErrQueueFull
	}
	q.rq.push(w)
	return nil
}

func (q *QP) postable() error {
	if q.state == Idle || q.state == RTS {
		return nil
	}
	if q.cause != nil {
		return fmt.Errorf("QP in state %v: %w (%w)", q.state, ErrBadState, q.cause)
	}
	return fmt.Errorf("QP in state %v: %w", q.state, ErrBadState)
}

// Outstanding returns how many requests of the Send Queue, and of the QP's own
// Receive Queue, are not complete.
func (q *QP) Outstanding() (sends, receives int) {
	sends, receives = int(q.sq.tail-q.sq.head), int(q.rq.tail-q.rq.head)
	if q.taken && q.cfg.Source == nil {
		receives++
	}
	return sends, receives
}

// complete reports the end of a Send Queue entry. Successful unsignaled work
// ends in silence.
func (q *QP) completeSend(e *sendEntry) {
	if e.Unsignaled && e.status == StatusSuccess {
		return
	}
	c := Completion{ID: e.ID, Op: e.Op, Status: e.status, Cookie: e.Cookie}
	if e.status == StatusSuccess {
		c.Length = e.length
	}
	q.done = append(q.done, c)
}

// retire completes, in the order of posting, all entries that are done
// (RFC 5040, section 5.5: operations complete locally in ULP order).
func (q *QP) retire() {
	for !q.sq.empty() && q.sq.head < q.sq.next {
		e := q.sq.at(q.sq.head)
		if e.phase == phaseBuilt && e.end <= q.sent {
			e.phase = phaseDone
		}
		if e.phase != phaseDone {
			return
		}
		q.completeSend(e)
		q.release(e)
		q.sq.head++
	}
}

// release drops the slot's references; its inline memory stays for the next.
func (q *QP) release(e *sendEntry) {
	inline := e.inline[:0]
	*e = sendEntry{inline: inline}
}

// flush ends all work that is left (RDMA verbs 6.2, Error and Closing). It
// waits until the socket holds no reference to the consumer's memory.
func (q *QP) flush() {
	if q.inFlight {
		return
	}
	for !q.sq.empty() {
		e := q.sq.at(q.sq.head)
		if e.status == StatusSuccess && e.phase != phaseDone {
			e.status = StatusFlushed
		}
		q.completeSend(e)
		q.release(e)
		q.sq.head++
	}
	q.sq.next = q.sq.head
	q.flushReceives()
}

func (q *QP) flushReceives() {
	if q.taken {
		q.completeReceive(Completion{Status: StatusFlushed})
	}
	for q.cfg.Source == nil && q.rq.Take(&q.current) {
		q.completeReceive(Completion{Status: StatusFlushed})
	}
}

// completeReceive ends the receive in use; c says how.
func (q *QP) completeReceive(c Completion) {
	c.ID, c.Op, c.Cookie = q.current.ID, OpReceive, q.current.Cookie
	q.done = append(q.done, c)
	q.current, q.taken = RecvWork{}, false
}
