package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// Bounds for what a TCP that is aware of MPA shows ahead of order. TCP shows no more than its receive window,
// which is rarely larger; what is beyond is placed when it comes in order.
const (
	aheadSegments = 4096
	aheadOctets   = 4 << 20
)

// lookAhead has octets that arrive ahead of order looked at, where TCP shows them and FPDUs can be
// found in them.
func (qp *QP) lookAhead(c *tcp.Conn) {
	if n := qp.Negotiated(); n.MarkersReceive && n.CRC {
		c.ShowAhead(func(at uint64, octets []byte) { qp.shown(c, at, octets) })
	}
}

// shown takes in octets that TCP shows. It runs in a goroutine of TCP's, while others may receive: all that it
// does happens under the QP's lock, as with what comes in order.
func (qp *QP) shown(c *tcp.Conn, at uint64, octets []byte) {
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if !qp.carries(c) {
		return
	}
	now := time.Now()
	qp.eng.InputAhead(now, at, octets)
	qp.noteInput(now)
	qp.settle()
}
