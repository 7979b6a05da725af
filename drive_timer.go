package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// onTimer acts on the deadlines of the engine that have passed when it is called. However late the rest of it runs, what has come
// by then is taken in before a FIN goes that was held back for it, and a wait that begins meanwhile is not over.
func (qp *QP) onTimer() {
	now := time.Now()
	if c := qp.holdsFIN(); c != nil {
		ok, err := c.RecvRest() // a Read that is there already is answered before the FIN
		defer c.Done()
		if ok {
			qp.received(c, err)
		}
	}
	l, octets := qp.moves()
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if !qp.timer.Take() {
		return
	}
	if !qp.eng.Quiet().IsZero() && qp.unsent() {
		qp.eng.Unsent(time.Now())
	}
	qp.moved(now, l, octets)
	if qp.eng.Parting() {
		qp.owes(now)
	}
	qp.eng.HandleTimeout(now)
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

// now reads the clock, in half the time that time.Now takes: what the driver does with it is to compare it with others.
func (qp *QP) now() time.Time { return qp.rnic.born.Add(time.Since(qp.rnic.born)) }
