package iwarp

import "fmt"

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
		return ErrCQOverflow
	}
	u := cq.qps[qp]
	u.queues++
	cq.qps[qp] = u
	cq.had = true
	cq.findOnly()
	return nil
}

// findOnly settles which QP a poller receives for.
func (cq *CQ) findOnly() {
	cq.only = nil
	if len(cq.qps) == 1 {
		for qp := range cq.qps {
			cq.only = qp
		}
	}
}

func (cq *CQ) detach(qp *QP) {
	cq.mu.Lock()
	u := cq.qps[qp]
	if u.queues--; u.queues > 0 {
		cq.qps[qp] = u
	} else {
		cq.setEnded(qp, false)
		delete(cq.qps, qp)
		cq.passOn() // it may have been the last
	}
	cq.findOnly()
	cq.mu.Unlock()
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
	u, uses := cq.qps[qp]
	if !uses || u.ended == ended {
		return
	}
	if u.ended = ended; ended {
		cq.ended++
	} else {
		cq.ended--
	}
	cq.qps[qp] = u
}
