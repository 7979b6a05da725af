package iwarp

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/driver"
)

// waitFailed returns the error of a Wait that ends without a completion.
func waitFailed(err error) error { return &OpError{Op: "wait for a completion", Err: err} }

// Next takes the oldest completion, and waits for one if there is none. A completion that is there is returned whatever
// ctx says. The error is that of Wait. It says nothing of the request, which may have failed: ask WC.Err, or use All,
// whose error is both. See docs/from-verbs.md for a checker.
func (cq *CQ) Next(ctx context.Context) (WC, error) {
	var wc [1]WC
	for cq.Poll(wc[:]) == 0 {
		if err := cq.Wait(ctx); err != nil {
			return WC{}, err
		}
	}
	return wc[0], nil
}

// All returns the completions, one after the other, and waits for each. The error is that of the request (WC.Err), so
// that none is overlooked. When no completion is left and none will come, or the context ends, the loop ends with the
// error of Wait; the WC is zero then. So All ends with an error at an orderly end too, for which errors.Is(err, io.EOF)
// is true if the peer was the first to close; [QP.Messages] ends with none.
func (cq *CQ) All(ctx context.Context) iter.Seq2[WC, error] {
	return func(yield func(WC, error) bool) {
		for {
			wc, err := cq.Next(ctx)
			if err != nil {
				yield(WC{}, err)
				return
			}
			if !yield(wc, wc.Err()) {
				return
			}
		}
	}
}

// Wait returns when there is a completion to poll. Its error is an *OpError: it wraps the context's or, if no
// completion is left and none will come, ErrClosed, ErrCQOverflow or ErrNoQP: every QP that used the CQ was closed, or
// its connection has ended. If there is one QP left, which has ended, the error wraps that of QP.Err too. Where QPs are
// still to come, call Wait again when the next one is there; or create a QP on the CQ that is never connected, and Wait
// goes on waiting until that is closed.
//
// On a quiet connection of a CQ with a single QP, Wait receives by itself, which spares a message the way through
// another goroutine. That is cheapest with the same context each time. When a program that has waited so again and
// again stops waiting, what the peer does by itself then, such as a Read of this end's memory, may be noticed up to 4
// ms later, once. Arm spares that. The end of the connection is noticed at once.
func (cq *CQ) Wait(ctx context.Context) error {
	if err := cq.made(); err != nil {
		return err
	}
	if ctx == nil {
		return waitFailed(errNoContext)
	}
	cancel := ctx.Done()
	for {
		if c := cq.quiet(); c != nil {
			c.ReceiveFor(ctx, consumer{cq})
		}
		ready, err := cq.enter()
		if errors.Is(err, ErrNoQP) {
			return waitFailed(cq.deserted())
		}
		if ready || err != nil {
			return err
		}
		cq.rearmReads()
		if cancel == nil {
			<-cq.gate
			continue
		}
		select {
		case <-cq.gate:
		case <-cancel:
			cq.leave()
			return waitFailed(deadline.ContextError(ctx))
		}
	}
}

// quiet returns the connection that one of Wait may receive on by itself: that of the CQ's only QP, if there is nothing
// to be polled.
func (cq *CQ) quiet() *driver.Conn {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.ring.Len() > 0 || cq.only == nil {
		return nil
	}
	return cq.only.conn.Load()
}

// awaited reports whether somebody waits for a completion of a QP, or for a notice of one. Where the
// CQ has other QPs too, it is always true: a waiter does not tell each of them.
func (cq *CQ) awaited(qp *QP) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.only != qp || cq.waiters > 0 || cq.arm != armedNot
}

// rearmReads tells the CQ's only QP of a waiter, or of a notice that is asked for. Where there are several, each counts
// as awaited at all times.
func (cq *CQ) rearmReads() {
	cq.mu.Lock()
	qp := cq.only
	cq.mu.Unlock()
	if qp != nil {
		upcalls{qp}.rearmReads()
	}
}

// A consumer is one of Wait that receives for itself: a driver.Consumer.
type consumer struct{ cq *CQ }

// Sleep reports whether there is nothing to wake up for.
func (w consumer) Sleep(c *driver.Conn) bool {
	cq := w.cq
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if ready, err := cq.outcome(); ready || err != nil || cq.leader != nil && cq.leader != c {
		return false
	}
	cq.leader = c
	c.Announce()
	return true
}

// Awake says that nobody receives for the CQ any more.
func (w consumer) Awake() {
	w.cq.mu.Lock()
	w.cq.leader = nil
	w.cq.mu.Unlock()
}

// enter registers a waiter unless there is nothing to wait for.
func (cq *CQ) enter() (ready bool, err error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if ready, err = cq.outcome(); ready || err != nil {
		cq.passOn()
		return ready, err
	}
	if cq.gate == nil {
		cq.gate = make(chan struct{}, 1)
	}
	cq.waiters++
	return false, nil
}

// outcome returns what Wait is to return, if it need not wait. The caller holds the lock.
func (cq *CQ) outcome() (ready bool, err error) {
	switch {
	case cq.ring.Len() > 0:
		return true, nil
	case cq.closed && !cq.auto:
		return false, waitFailed(errCQClosed)
	case cq.overflow:
		return false, waitFailed(errCQLost)
	case cq.had && cq.ended == cq.used:
		return false, ErrNoQP
	}
	return false, nil
}

// deserted returns ErrNoQP, and with it why the connection has ended, if there was only one.
func (cq *CQ) deserted() error {
	cq.mu.Lock()
	qp := cq.only
	cq.mu.Unlock()
	if qp == nil {
		return ErrNoQP
	}
	why := qp.Err() // once: Modify to StateIdle forgets it
	if why == nil {
		return ErrNoQP
	}
	return fmt.Errorf("%w: %w", ErrNoQP, why)
}

// leave removes a waiter that gives up.
func (cq *CQ) leave() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.waiters > 0 {
		cq.waiters-- // a token that was meant for it wakes another
		return
	}
	<-cq.gate
	cq.passOn() // the one that receives for itself, which has no token
}

// passOn wakes the next waiter, if there is one: a token stands for a waiter that is no
// longer counted. The one that receives for itself is the last.
func (cq *CQ) passOn() {
	if cq.waiters == 0 {
		if cq.leader != nil {
			cq.leader.Interrupt()
		}
		return
	}
	select {
	case cq.gate <- struct{}{}:
		cq.waiters--
	default: // who takes the token that is there passes it on
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// attach ties a queue of a QP to the CQ. Only the owner of both can do that: they must
// belong to one RNIC.
func (cq *CQ) attach(qp *QP) error {
	if err := cq.made(); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.rnic != qp.rnic:
		return fmt.Errorf("%w: CQ of another RNIC than the QP: create it with that of the QP's PD (PD.RNIC)",
			ErrInvalid)
	case cq.closed:
		return errCQClosed
	case cq.overflow:
		return errCQLost
	}
	u := cq.useBy(qp)
	if u.queues++; u.queues == 1 {
		cq.link(u, qp)
	}
	cq.had = true
	return nil
}

// useBy returns what a QP has to do with the CQ, which is one of its own.
func (cq *CQ) useBy(qp *QP) *cqUse {
	if cq == qp.sendCQ {
		return &qp.uses[0]
	}
	return &qp.uses[1]
}

func (cq *CQ) link(u *cqUse, qp *QP) {
	u.qp, u.next = qp, cq.uses
	if u.next != nil {
		u.next.prev = u
	}
	cq.uses = u
	cq.used++
	cq.findOnly()
}

func (cq *CQ) unlink(u *cqUse) {
	if u.next != nil {
		u.next.prev = u.prev
	}
	if u.prev != nil {
		u.prev.next = u.next
	} else {
		cq.uses = u.next
	}
	*u = cqUse{}
	cq.used--
	cq.findOnly()
}

// findOnly notes which QP a poller receives for: the only one of the CQ, if there is but one.
func (cq *CQ) findOnly() {
	cq.only = nil
	if cq.used == 1 {
		cq.only = cq.uses.qp
	}
}

// qps has the QPs that use the CQ. The caller holds the lock.
func (cq *CQ) qps() iter.Seq[*QP] {
	return func(yield func(*QP) bool) {
		for u := cq.uses; u != nil && yield(u.qp); u = u.next {
		}
	}
}

func (cq *CQ) detach(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	u := cq.useBy(qp)
	if u.queues > 1 {
		u.queues--
		return
	}
	cq.setEnded(qp, false)
	cq.unlink(u)
	cq.passOn() // it may have been the last
}

// qpEnded notes that a QP's connection has ended: nothing more comes of it.
func (cq *CQ) qpEnded(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.setEnded(qp, true)
	cq.passOn()
}

// revive notes that a QP whose connection has ended can have, or has, another.
func (cq *CQ) revive(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.setEnded(qp, false)
}

// setEnded notes whether a QP's connection has ended, if the QP uses the CQ.
func (cq *CQ) setEnded(qp *QP, ended bool) {
	u := cq.useBy(qp)
	if u.queues == 0 || u.ended == ended {
		return
	}
	if u.ended = ended; ended {
		cq.ended++
	} else {
		cq.ended--
	}
}
