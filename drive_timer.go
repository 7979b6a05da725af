package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// setTimer has onTimer called at the engine's deadline.
func (qp *QP) setTimer(at time.Time) {
	if at.Equal(qp.timerAt) {
		return
	}
	qp.timerAt = at
	switch {
	case at.IsZero():
		qp.timer.Stop()
	case qp.timer == nil:
		qp.timer = time.AfterFunc(time.Until(at), qp.onTimer)
	default:
		qp.timer.Reset(time.Until(at))
	}
}

func (qp *QP) onTimer() {
	if c := qp.holdsFIN(); c != nil {
		ok, err := c.RecvRest() // a Read that is there already is answered before the FIN
		defer c.Done()
		if ok {
			qp.received(c, err)
		}
	}
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if qp.timerAt.IsZero() {
		return
	}
	qp.timerAt = time.Time{}
	if !qp.eng.Quiet().IsZero() && qp.unsent() {
		qp.eng.Unsent(time.Now())
	}
	qp.eng.HandleTimeout(time.Now())
	qp.pushUnlocking()
}

// holdsFIN returns the connection if its FIN is held back.
func (qp *QP) holdsFIN() *tcp.Conn {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.eng.Quiet().IsZero() {
		return nil
	}
	return qp.conn
}
