package iwarp

import "github.com/goiwarp/iwarp/internal/engine"

// CreateQP returns a QP in state Idle. Receives may be posted to it before it
// is connected, and must be if the peer sends first.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	qp := &QP{rnic: pd.rnic, pd: pd, cfg: cfg, attr: cfg.Stream, done: make(chan struct{})}
	qp.room.L = &qp.mu
	if err := qp.acquire(); err != nil {
		return nil, &OpError{Op: "create QP", Err: err}
	}
	return qp, nil
}

// acquire takes everything that a QP needs from others, or nothing.
func (qp *QP) acquire() error {
	if err := qp.cfg.fill(); err != nil {
		return err
	}
	if err := qp.attr.check(qp.rnic.kind); err != nil {
		return err
	}
	for _, take := range qp.takes() {
		if err := take(); err != nil {
			qp.release()
			return err
		}
	}
	return nil
}

// takes are the steps of acquire, in their order. From takeCQs on others may end the QP: a CQ that overflows does. So
// its engine is made before.
func (qp *QP) takes() []func() error {
	return []func() error{qp.enterPD, qp.takeShares, qp.makeEngine, qp.takeCQs, qp.takeSRQ, qp.enroll}
}

// holding tells what a QP holds of others.
type holding uint8

const (
	holdsPD holding = 1 << iota
	holdsShares
	holdsOwnCQ
	holdsSendCQ
	holdsRecvCQ
	holdsSRQ
	holdsRNIC
)

// release gives back what the QP holds, the last that it took first.
func (qp *QP) release() {
	qp.giveBack(holdsRNIC, func() { qp.rnic.remove(qp) })
	qp.giveBack(holdsSRQ, func() { qp.cfg.SRQ.detach(qp) })
	qp.giveBack(holdsRecvCQ, func() { qp.recvCQ.detach(qp) })
	qp.giveBack(holdsSendCQ, func() { qp.sendCQ.detach(qp) })
	qp.giveBack(holdsOwnCQ, func() { _ = qp.sendCQ.Close() })
	qp.giveBack(holdsShares, func() { qp.rnic.ledger.give(qp.shares()...) })
	qp.giveBack(holdsPD, func() {
		qp.rnic.table.RemoveStream(qp.pd.num)
		qp.pd.detach(userQP)
	})
}

func (qp *QP) giveBack(h holding, f func()) {
	if qp.holds&h != 0 {
		f()
		qp.holds &^= h
	}
}

func (qp *QP) enterPD() error {
	if err := qp.pd.attach(userQP); err != nil {
		return err
	}
	qp.num, qp.boundTo = qp.rnic.number(), qp.rnic.table.NewStream()
	qp.rnic.table.AddStream(qp.pd.num)
	qp.holds |= holdsPD
	return nil
}

// shares are what the QP takes of its RNIC's limits.
func (qp *QP) shares() []share {
	entries := qp.cfg.SendDepth
	if qp.cfg.SRQ == nil {
		entries += qp.cfg.RecvDepth
	}
	return []share{{resQP, 1}, {resWR, entries}}
}

func (qp *QP) takeShares() error {
	err := qp.rnic.ledger.take(qp.shares()...)
	if err == nil {
		qp.holds |= holdsShares
	}
	return err
}

// takeCQs settles which CQs the QP uses.
func (qp *QP) takeCQs() (err error) {
	qp.sendCQ, qp.recvCQ = qp.cfg.SendCQ, qp.cfg.RecvCQ
	switch {
	case qp.sendCQ == nil && qp.recvCQ == nil:
		if qp.sendCQ, err = qp.ownCQ(); err != nil {
			return err
		}
		qp.recvCQ = qp.sendCQ
	case qp.sendCQ == nil:
		qp.sendCQ = qp.recvCQ
	case qp.recvCQ == nil:
		qp.recvCQ = qp.sendCQ
	}
	if err := qp.tie(qp.sendCQ, holdsSendCQ); err != nil {
		return err
	}
	return qp.tie(qp.recvCQ, holdsRecvCQ)
}

// ownCQ creates a CQ for a QP that was not given one. It ends with the QP, unless the
// consumer has given it to other QPs.
func (qp *QP) ownCQ() (*CQ, error) {
	depth := qp.cfg.SendDepth + qp.cfg.RecvDepth
	if qp.cfg.SRQ != nil {
		depth = qp.cfg.SendDepth + qp.cfg.SRQ.Depth()
	}
	cq, err := qp.rnic.CreateCQ(depth)
	if err == nil {
		cq.auto = true
		qp.holds |= holdsOwnCQ
	}
	return cq, err
}

func (qp *QP) tie(cq *CQ, h holding) error {
	err := cq.attach(qp)
	if err == nil {
		qp.holds |= h
	}
	return err
}

func (qp *QP) takeSRQ() error {
	srq := qp.cfg.SRQ
	if srq == nil {
		return nil
	}
	err := srq.attach(qp)
	if err == nil {
		qp.holds |= holdsSRQ
	}
	return err
}

func (qp *QP) makeEngine() error {
	qp.eng = engine.New(qp.engineConfig())
	return nil
}

// enroll makes the QP known to its RNIC.
func (qp *QP) enroll() error { return qp.rnic.enroll(qp) }
