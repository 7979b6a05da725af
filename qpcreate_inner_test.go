package iwarp

import (
	"errors"
	"testing"
	"testing/synctest"
)

// TestOverflowWhileCreating: a CQ overflows by others' completions while a QP that is to use it is being created, after
// each step of that. The QP is lost with the CQ, or not created, and nothing is held.
func TestOverflowWhileCreating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after := range 6 {
			rnic := NewRNIC(RNICConfig{})
			pd, err := rnic.AllocPD()
			if err != nil {
				t.Fatal(err)
			}
			cq, err := rnic.CreateCQ(8)
			if err != nil {
				t.Fatal(err)
			}
			qp := &QP{rnic: rnic, pd: pd, cfg: QPConfig{SendCQ: cq}, done: make(chan struct{})}
			qp.holds.qp = qp
			if err := qp.cfg.fill(); err != nil {
				t.Fatal(err)
			}
			err = stepwise(qp, func(step int) {
				if step == after {
					cq.mu.Lock()
					cq.dropped(WC{QP: qp})
					cq.mu.Unlock()
					synctest.Wait()
				}
			})
			switch {
			case err != nil && (after >= 3 || !errors.Is(err, ErrCQOverflow)):
				t.Errorf("overflow after step %d: %v", after, err)
			case err == nil && (after < 3 || qp.State() != StateError || !errors.Is(qp.Err(), ErrCQOverflow)):
				t.Errorf("overflow after step %d: the QP is %v, %v", after, qp.State(), qp.Err())
			}
			if err == nil {
				_ = qp.Close()
			}
			if n := rnic.ledger.inUse(resQP); n != 0 {
				t.Errorf("overflow after step %d: %d QPs are held", after, n)
			}
			rnic.Close()
		}
	})
}

// stepwise is acquire, with something done after each step.
func stepwise(qp *QP, do func(step int)) error {
	for step, take := range qp.holds.takes() {
		if err := take(); err != nil {
			qp.holds.release()
			return err
		}
		do(step)
	}
	return nil
}
