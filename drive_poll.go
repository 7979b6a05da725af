package iwarp

import "github.com/goiwarp/iwarp/internal/tcp"

// tryReceive takes in what has come, if anything has and no other goroutine is doing so: a
// consumer that polls drives its own connection, which spares it the way through another
// goroutine.
func (qp *QP) tryReceive() bool {
	c, did := qp.flush()
	if c == nil {
		return did
	}
	ok, err := c.TryRecv()
	if ok {
		qp.received(c, err)
		c.Done()
	}
	if c.HushDue() {
		qp.hush(c)
	}
	return ok || did
}

// hush has what arrives wake nobody while a consumer polls, if nobody else waits. Who begins to wait meanwhile looks out before
// this does, or is seen here.
func (qp *QP) hush(c *tcp.Conn) {
	if qp.awaited() {
		return
	}
	c.Hush()
	if qp.awaited() {
		c.LookOut()
	}
}
