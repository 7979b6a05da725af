package iwarp

import (
	"errors"
	"sync"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// upcalls are a QP as its connection sees it: a driver.Owner.
type upcalls struct{ qp *QP }

// Heard is called when the peer's first FPDU is here: the connection is half-open no more.
func (u upcalls) Heard() {
	qp := u.qp
	qp.mu.Lock()
	responder, slot := qp.neg.Role == mpa.RoleResponder, qp.ticket.slot
	qp.mu.Unlock()
	if responder {
		u.event(EventEstablished, nil)
	}
	slot.Heard()
}

// Completed hands completions to the CQs, or to the one-call forms that wait for them.
func (u upcalls) Completed(done []engine.Completion, cause error) (waited bool) {
	for len(done) > 0 {
		n, w := u.deliver(done, cause, &u.qp.mu)
		done, waited = done[n:], waited || w
	}
	return waited
}

// deliver delivers the first completion and those after it that go the same way, and returns how many. A CQ is locked
// once for all of them, and wakes its consumer once. A call takes its completion under mu: that is the QP's, or an
// unlocked if the caller holds the QP's.
func (u upcalls) deliver(done []engine.Completion, cause error, mu sync.Locker) (n int, waited bool) {
	cq := u.cqOf(&done[0])
	if cq == nil {
		var wc WC
		u.setWC(&wc, &done[0], cause)
		mu.Lock()
		defer mu.Unlock()
		return 1, done[0].Cookie.(*call).complete(wc)
	}
	for n = 1; n < len(done) && u.cqOf(&done[n]) == cq; n++ {
	}
	return n, cq.push(u, done[:n], cause)
}

// cqOf returns where a completion goes: nil for that of a one-call form.
func (u upcalls) cqOf(c *engine.Completion) *CQ {
	switch {
	case c.Cookie != nil:
		return nil
	case c.Op == engine.OpReceive:
		return u.qp.recvCQ
	}
	return u.qp.sendCQ
}

// setWC sets what a consumer is told of a completion. It does so in place: to copy in wide words what was just stored
// in narrow ones makes a processor wait for all those stores.
func (u upcalls) setWC(w *WC, c *engine.Completion, cause error) {
	qp := u.qp
	w.ID, w.Status, w.Op, w.Length, w.QP = c.ID, Status(c.Status), Op(c.Op), int(c.Length), qp
	w.Original, w.HasImmediate, w.Immediate, w.Written = c.Original, c.HasImmediate, c.Immediate, int(c.Written)
	w.Prefix, w.Invalidated, w.Solicited = c.Prefix, c.Invalidated, c.Solicited
	if w.Status != StatusSuccess {
		w.cause = publicError(cause)
	}
	if w.Op == OpRecv && qp.cfg.SRQ != nil {
		w.connection = qp.srqHeld.connection()
	}
}

var noticeEvents = [...]EventKind{
	engine.NoticeTerminateReceived: EventTerminateReceived,
	engine.NoticeTerminateSent:     EventTerminateSent,
	engine.NoticeConnectionLost:    EventConnectionLost,
	engine.NoticeBadClose:          EventBadClose,
	engine.NoticeHalfClosed:        EventHalfClosed,
	engine.NoticeCloseComplete:     EventCloseComplete,
	engine.NoticeNudge:             0,
	engine.NoticeSilent:            0,
}

// Noticed logs a notice, and makes events of it.
func (u upcalls) Noticed(n *engine.Notice, cause error) {
	u.qp.journal.notice(n)
	if k := noticeEvents[n.Kind]; k != 0 {
		u.event(k, publicError(n.Err))
	}
	u.fatal(n, cause)
	u.lastWQE(n)
	if n.Kind == engine.NoticeHalfClosed && u.qp.inbox != nil {
		u.qp.recvCQ.qpEnded(u.qp) // no message comes any more
	}
}

// event tells the RNIC's consumer of something about the connection.
func (u upcalls) event(kind EventKind, err error) {
	u.qp.rnic.event(Event{Kind: kind, QP: u.qp, Err: err, RemoteAddr: u.qp.RemoteAddr()})
}

// fatal tells the consumer of a QP that an error has put into StateError, unless a Terminate or the loss of
// the connection has, of which there are events.
func (u upcalls) fatal(n *engine.Notice, cause error) {
	if n.Kind != engine.NoticeState || n.To != engine.Error || n.From == engine.Terminate {
		return
	}
	switch {
	case errors.Is(cause, ErrConnectionLost), errors.Is(cause, errAborted), errors.Is(cause, errRNICClosed),
		errors.Is(cause, errReleased), errors.Is(cause, engine.ErrAborted):
	default:
		u.event(EventQPFatal, publicError(cause))
	}
}

// lastWQE tells a consumer with a Shared Receive Queue that the QP has left RTS for good: once, as to Error it may go
// from Idle, and back.
func (u upcalls) lastWQE(n *engine.Notice) {
	over := func(s engine.State) bool { return s == engine.Error || s == engine.Idle }
	if u.qp.cfg.SRQ != nil && n.Kind == engine.NoticeState && over(n.To) && !over(n.From) {
		u.event(EventLastWQE, nil)
	}
}

// Ended is called when the connection is over. The QP keeps how it has ended, and may have another.
func (u upcalls) Ended(e *driver.End) {
	qp := u.qp
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.addEnd(e)
	qp.ended, qp.why = e, publicError(e.Cause)
	qp.conn.Store(nil)
	qp.endStream()
	qp.journal.logEnd(qp.status())
}

// endStream ends what belongs to one connection, and closes Done. The caller holds qp.mu.
func (qp *QP) endStream() {
	if srq := qp.cfg.SRQ; srq != nil {
		srq.returnSlots(qp)
	}
	qp.rnic.table.EndStream(qp.memory)
	qp.memory = qp.rnic.table.NewStream()
	close(qp.done)
	endContext(qp)
	qp.ticket.slot.Leave()
	qp.ticket = ticket{}
	qp.sendCQ.qpEnded(qp)
	qp.recvCQ.qpEnded(qp)
}

// Settled logs what has happened, and has posts go on that wait for room.
func (u upcalls) Settled(receiving bool) {
	u.qp.journal.flush(receiving)
	u.qp.room.notify()
}

// Awaited reports whether anybody waits for what the QP brings who does not receive for itself, or may do so unnoticed.
func (u upcalls) Awaited() bool {
	qp := u.qp
	return qp.callers.Load() > 0 || qp.sendCQ.awaited(qp) || qp.recvCQ != qp.sendCQ && qp.recvCQ.awaited(qp)
}

// rearmReads tells the connection that somebody begins to wait for the QP, and does not receive for itself.
func (u upcalls) rearmReads() {
	if c := u.qp.conn.Load(); c != nil {
		c.RearmReads()
	}
}
