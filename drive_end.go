package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
)

func (qp *QP) endLLP(how engine.LLP) {
	switch how {
	case engine.Finish:
		qp.sendFIN()
	case engine.Part:
		qp.part()
	case engine.Drop:
		qp.closeLLP(false)
	case engine.Reset:
		qp.closeLLP(true)
	}
}

// closeLLP closes the connection, or resets it. The Close of one that is not a plain socket runs without
// a lock, as it is the consumer's code and may call the QP, or wait for the peer; so does what
// is to be waited for after it.
func (qp *QP) closeLLP(reset bool) {
	c := qp.link
	qp.watch.stop()
	if !c.Foreign() {
		closeLink(c, reset)
		qp.closedLLP = true
		return
	}
	qp.closingLLP = true
	hurried := qp.farewell.begin()
	go func() {
		closeLink(c, reset)
		var lost error
		if !reset {
			lost = qp.awaitTold(c, hurried)
		}
		qp.mu.Lock()
		defer qp.unlock()
		qp.parted(lost)
	}()
}

func closeLink(c link, reset bool) {
	if reset {
		_ = c.Reset()
	} else {
		_ = c.Close()
	}
}

// sendFIN closes our half. If the connection has no halves, all of it is closed: what the
// peer might still send would be of no use.
func (qp *QP) sendFIN() {
	switch {
	case !qp.link.HasHalves():
		qp.eng.WholeClosed(time.Now())
	case qp.link.Foreign(): // see closeLLP
		go qp.link.CloseWrite()
	default:
		qp.finSent = true
		_ = qp.link.CloseWrite() // whoever receives learns of a reset, after what came before it
	}
}

// part ends our half after the peer's. Nobody receives any more, so a reset shows in what the socket says only. Where
// something of ours is not acknowledged, attend waits for that.
func (qp *QP) part() {
	now := time.Now()
	owed, err := qp.conn.Owes()
	data := owed
	if qp.finSent {
		data = max(owed-1, 0)
	} else if err == nil {
		err = qp.link.CloseWrite()
	}
	switch {
	case err != nil:
		qp.eng.Failed(now, err)
	case owed == 0:
		qp.eng.Parted(now)
	default:
		qp.eng.Owed(now, data)
	}
}

// owes tells the engine what the peer has not acknowledged after its FIN and ours.
func (qp *QP) owes(now time.Time) {
	if owed, err := qp.conn.Owes(); err != nil {
		qp.eng.Failed(now, err)
	} else {
		qp.eng.Owed(now, max(owed-1, 0))
	}
}

// attend waits, after the peer's FIN, for the end of the connection: the acknowledgement of our FIN, or a reset.
func (qp *QP) attend(c *tcp.Conn) {
	if !qp.stillCarries(c) {
		return // as most connections end
	}
	if known, err := c.AwaitEnd(); known {
		qp.attended(c, err)
	}
}

// attended takes in how a connection has ended, unless it was given up meanwhile, or the QP has another.
func (qp *QP) attended(c *tcp.Conn, err error) {
	qp.mu.Lock()
	defer qp.unlockReceiving()
	switch {
	case !qp.carries(c):
	case err != nil:
		qp.eng.Failed(time.Now(), err)
	default:
		qp.eng.Parted(time.Now())
	}
	qp.pushUnlocking()
}

func (qp *QP) stillCarries(c *tcp.Conn) bool {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.carries(c)
}

// end closes Done: the socket, if there was one, is closed and all work flushed.
func (qp *QP) end() {
	select {
	case <-qp.done:
	default:
		qp.returnSlots()
		qp.rnic.table.EndStream(qp.boundTo)
		qp.boundTo = qp.rnic.table.NewStream()
		qp.eng.SetStream(qp.boundTo)
		close(qp.done)
		qp.watch.end()
		qp.sendCQ.end(qp)
		qp.recvCQ.end(qp)
		if qp.link != nil {
			qp.logEnd()
		}
	}
}
