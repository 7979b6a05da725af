package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// onTimer is called at the engine's deadline.
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
	if !qp.timer.Take() {
		return
	}
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
