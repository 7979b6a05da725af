package iwarp

import (
	"context"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// A consumer that waits on a quiet connection receives for itself: a message then wakes the
// goroutine that wants it, and no other. internal/tcp has the rules of who reads (tcp.Conn's
// StandBack and Take).
//
// The receiving goroutine stands back when a message has come for which somebody waited, and
// nothing after it. Wait of a CQ with a single QP, and the one-call forms, then take the role.
// The consumer carries out what octets bring as the receiving goroutine would: placement, Read
// Responses, completions for others, a Terminate. It stops when there is what it waits for:
//
//   - its completion, or the end of its CQ: by what it received itself, or by a poster, a
//     sender, a timer, Close or Abort. Those interrupt it: see sleeper;
//   - the end of its context, which interrupts it;
//   - the end of the connection, which it finds as it reads.
//
// Timers and closes run in goroutines of their own and need nobody to read. A consumer that
// leaves and does not come back keeps nothing waiting for long: what arrives next wakes the receiving
// goroutine, at once if anybody else waits or the peer ends, and after a few milliseconds at most if nobody does. That
// goes on until it is quiet again.
type lead struct { // guarded by QP.mu
	offer bool // someone has waited for a completion that came with the last octets
	quiet bool // nothing was left of those
	// How many such offers pass by before the receiving goroutine stands back, and how many
	// they were the last time: they grow while consumers do not come, or get interrupted.
	skips, lastSkips int
}

const (
	minSkips  = 8
	maxSkips  = 1024
	goodLeads = 16 // in a row: consumers keep coming
)

// A sleeper is what a consumer waits for.
type sleeper interface {
	// sleep reports whether there is nothing yet. Then c.Interrupt is called when there is.
	sleep(c *tcp.Conn) bool
	// awake says that nobody waits in this way any more.
	awake()
}

// leadFor receives for a consumer as long as that has to wait, if nobody else does. When it
// returns there may still be reason to wait.
func (qp *QP) leadFor(ctx context.Context, s sleeper) {
	c := qp.connection()
	if c == nil || !c.Take() {
		return
	}
	c.InterruptWith(ctx)
	interrupted, more := false, true
	for more && s.sleep(c) && ctx.Err() == nil {
		var err error
		if interrupted, err = c.RecvTaken(); !interrupted {
			more = qp.takeIn(c, err)
		}
	}
	s.awake() // before the next has the role
	if more {
		c.Leave(interrupted && ctx.Err() == nil, qp.awaited())
	}
}

// lookOut is called by who begins to wait for the QP and does not receive for itself.
func (qp *QP) lookOut() {
	if c := qp.connection(); c != nil {
		c.LookOut()
	}
}

// awaited reports whether anybody waits for what the QP brings who does not receive for itself, or may do so unnoticed.
func (qp *QP) awaited() bool {
	return qp.callers.Load() > 0 || qp.sendCQ.awaited(qp) || qp.recvCQ != qp.sendCQ && qp.recvCQ.awaited(qp)
}

// awaited reports whether somebody waits for a completion of a QP, or for a notice of one. Of a CQ with others, nobody who begins to wait asks each QP.
func (cq *CQ) awaited(qp *QP) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.only != qp || cq.waiters > 0 || cq.arm != armedNot
}

// lookOut has the CQ's only QP know of a waiter, or of a notice that is asked for. Those of several are awaited at all times.
func (cq *CQ) lookOut() {
	cq.mu.Lock()
	qp := cq.only
	cq.mu.Unlock()
	if qp != nil {
		qp.lookOut()
	}
}

func (qp *QP) connection() *tcp.Conn {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.conn
}

// standsBack reports whether a consumer has just got what it waited for, and whether the
// receiving goroutine is therefore to let consumers receive for themselves: nothing came after it.
func (qp *QP) standsBack(c *tcp.Conn) (woke, back bool) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	l := &qp.lead
	if !l.offer || !l.quiet || qp.conn != c || qp.cfg.Unready != (Unready{}) { // who waits for room is to be nobody else
		return l.offer, false
	}
	if l.skips > 0 {
		l.skips--
		return true, false
	}
	return true, c.CanStandBack()
}

// stoodBack takes note of how often consumers have received in place of the receiving goroutine.
func (qp *QP) stoodBack(leads int) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	l := &qp.lead
	if leads >= goodLeads {
		l.lastSkips = 0
	}
	l.lastSkips = min(max(minSkips, 2*l.lastSkips), maxSkips)
	l.skips = l.lastSkips
}

// leads returns the QP that one of Wait may receive for.
func (cq *CQ) leads() *QP {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.ring.Len() > 0 {
		return nil
	}
	return cq.only
}

func (cq *CQ) sleep(c *tcp.Conn) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if ready, err := cq.outcome(); ready || err != nil || cq.leader != nil && cq.leader != c {
		return false
	}
	cq.leader = c
	c.Announce()
	return true
}

func (cq *CQ) awake() {
	cq.mu.Lock()
	cq.leader = nil
	cq.mu.Unlock()
}

func (c *call) sleep(on *tcp.Conn) bool {
	c.qp.mu.Lock()
	defer c.qp.mu.Unlock()
	if len(c.done) > 0 {
		return false
	}
	c.leader = on
	on.Announce()
	return true
}

func (c *call) awake() {
	c.qp.mu.Lock()
	c.leader = nil
	c.qp.mu.Unlock()
}
