package iwarp

import (
	"context"
	"errors"
	"fmt"
)

// waitFailed is the error of a Wait that ends without a completion.
func waitFailed(err error) error { return &OpError{Op: "wait for a completion", Err: err} }

// Next takes the oldest completion, and waits for one if there is none. A completion
// that is there is returned whatever ctx says. The error is that of Wait.
func (cq *CQ) Next(ctx context.Context) (WC, error) {
	var wc [1]WC
	for cq.Poll(wc[:]) == 0 {
		if err := cq.Wait(ctx); err != nil {
			return WC{}, err
		}
	}
	return wc[0], nil
}

// Wait returns when there is a completion to poll. Its error is an *OpError: it wraps the context's or, if no
// completion is left and none will come, ErrClosed, ErrCQOverflow or ErrNoQP: every QP
// that used the CQ was closed, or its connection has ended. If there is one QP left, which has ended, the error wraps
// that of QP.Err too. Where QPs are still to come,
// call Wait again when the next one is there; or create a QP on the CQ that is never
// connected, and Wait goes on waiting until that is closed.
//
// On a quiet connection of a CQ with a single QP, Wait receives by itself, which spares a
// message the way through another goroutine. That is cheapest with the same context each time. When a
// program that has waited so again and again stops waiting, what the peer does by itself then, such as a Read of this end's memory, may be
// noticed up to 4 ms later, once. Arm spares that. The end of the connection is noticed at once.
func (cq *CQ) Wait(ctx context.Context) error {
	cancel := ctx.Done()
	for {
		if qp := cq.leads(); qp != nil {
			qp.leadFor(ctx, cq)
		}
		ready, err := cq.enter()
		if errors.Is(err, ErrNoQP) {
			return waitFailed(cq.deserted())
		}
		if ready || err != nil {
			return err
		}
		cq.lookOut()
		if cancel == nil {
			<-cq.gate
			continue
		}
		select {
		case <-cq.gate:
		case <-cancel:
			cq.leave()
			return waitFailed(ctx.Err())
		}
	}
}

// enter registers a waiter unless there is nothing to wait for.
func (cq *CQ) enter() (ready bool, err error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if ready, err = cq.outcome(); ready || err != nil {
		cq.passOn()
		return ready, err
	}
	cq.waiters++
	return false, nil
}

// outcome is what Wait returns, if it need not wait. The caller holds the lock.
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

// deserted is ErrNoQP, with the reason why the connection has ended if it was the only one.
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
