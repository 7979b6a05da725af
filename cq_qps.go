package iwarp

import (
	"fmt"
	"iter"
)

// attach ties a queue of a QP to the CQ. Only the owner of both can do that: they must
// belong to one RNIC.
func (cq *CQ) attach(qp *QP) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.rnic != qp.rnic:
		return fmt.Errorf("%w: CQ of another RNIC than the QP: create it with that of the QP's PD (PD.RNIC)", ErrInvalid)
	case cq.closed:
		return errCQClosed
	case cq.overflow:
		return errCQLost
	}
	u := qp.useOf(cq)
	if u.queues++; u.queues == 1 {
		cq.link(u, qp)
	}
	cq.had = true
	return nil
}

// useOf returns what the QP has to do with a CQ of its own.
func (qp *QP) useOf(cq *CQ) *cqUse {
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

// findOnly settles which QP a poller receives for.
func (cq *CQ) findOnly() {
	cq.only = nil
	if cq.used == 1 {
		cq.only = cq.uses.qp
	}
}

// qps are those that use the CQ. The caller holds the lock.
func (cq *CQ) qps() iter.Seq[*QP] {
	return func(yield func(*QP) bool) {
		for u := cq.uses; u != nil && yield(u.qp); u = u.next {
		}
	}
}

func (cq *CQ) detach(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	u := qp.useOf(cq)
	if u.queues > 1 {
		u.queues--
		return
	}
	cq.setEnded(qp, false)
	cq.unlink(u)
	cq.passOn() // it may have been the last
}

// end notes that a QP's connection has ended: nothing more comes of it.
func (cq *CQ) end(qp *QP) {
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
	u := qp.useOf(cq)
	if u.queues == 0 || u.ended == ended {
		return
	}
	if u.ended = ended; ended {
		cq.ended++
	} else {
		cq.ended--
	}
}
