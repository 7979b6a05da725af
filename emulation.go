package iwarp

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
)

func init() {
	emulation.Disarm = func(cq any, solicited bool) bool { return disarm(cq.(*CQ), solicited) }
	emulation.SetPrefix = func(qp any, on bool) error { return setPrefix(qp.(*QP), on) }
	emulation.SetRNR = func(qp, policy any) error { return setRNR(qp.(*QP), *policy.(*RNRPolicy)) }
	emulation.Deny = func(qp any, rights uint8) error { return deny(qp.(*QP), Access(rights)) }
	emulation.Waiting = func(cq any) int { return waiting(cq.(*CQ)) }
	emulation.Forget = func(cq, userData any) { forget(cq.(*CQ), userData) }
	emulation.Mute = func(qp any) { qp.(*QP).mute.Store(true) }
	emulation.BeginClose = func(qp any) { qp.(*QP).beginClose((*driver.Conn).BeginClose) }
	emulation.PostAll = func(qp, wrs any) error { return postWhole(qp.(*QP), *wrs.(*[]SendWR)) }
}

func disarm(cq *CQ, solicited bool) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.disarm(solicited)
}

func setPrefix(qp *QP, on bool) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if s := qp.status().state; s != StateIdle && s != StateClosed {
		return &OpError{Op: "modify QP", Err: ErrBadState}
	}
	qp.prefixed = on
	if qp.machine != nil {
		qp.machine.SetPrefix(on)
	}
	return nil
}

func setRNR(qp *QP, policy RNRPolicy) error {
	policy.fill()
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if s := qp.status().state; s != StateIdle && s != StateClosed {
		return &OpError{Op: "modify QP", Err: ErrBadState}
	}
	qp.cfg.RNR = policy
	if qp.machine != nil {
		qp.machine.SetRNR(engine.RNR(policy))
	}
	return nil
}

func waiting(cq *CQ) int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.ring.Len()
}

func forget(cq *CQ, userData any) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	var wc [1]WC
	for range cq.ring.Len() {
		cq.ring.Take(&wc[0])
		if wc[0].QP.UserData() == userData {
			polled(wc[:])
		} else {
			*cq.ring.Add() = wc[0]
		}
	}
}

func deny(qp *QP, a Access) error {
	if a&^deniable != 0 {
		return &OpError{Op: "modify QP", Err: errDeny(a)}
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.cfg.Deny = a
	if qp.machine != nil {
		qp.machine.Deny(memory.Access(a))
	}
	if c := qp.conn.Load(); c != nil {
		c.Deny(memory.Access(a))
	}
	return nil
}

// postWhole posts all of a list, or nothing.
func postWhole(qp *QP, wrs []SendWR) error {
	p := qp.rnic.posting()
	size, err := p.translateAll(qp, wrs)
	n := len(p.list)
	if err == nil {
		n, err = qp.postList(p.list, size, time.Time{}, true)
	}
	qp.rnic.postings.Put(p.reset())
	if err != nil {
		return &OpError{Op: "post send", Err: fmt.Errorf("request %d of %d, of which none is posted: %w",
			n+1, len(wrs), refused(err))}
	}
	return nil
}
