package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// sendRate is how many bytes of a Send give it another second.
const sendRate = 64 << 10

// watchSend sets the time by which a Send under way is to be complete. It holds a receive
// that other QPs could use; a peer that never ends it, or lets its bytes drip, must not
// keep that for ever (RFC 5042, section 6.4.3.1).
func (q *Machine) watchSend(now time.Time) {
	if q.cfg.SendTimeout <= 0 || q.cfg.Source == nil {
		return
	}
	queue := &q.queues[rdmap.QNSend]
	switch {
	case !q.taken || q.state != RTS:
		q.sendBy = time.Time{}
		return
	case q.sendBy.IsZero() || q.sendOf != queue.MSN():
		q.sendFrom, q.sendOf = now, queue.MSN()
	}
	more := time.Duration(queue.Placed()) * time.Second / sendRate // it fits: a Send has less than 2^32 bytes
	q.sendBy = q.sendFrom.Add(q.cfg.SendTimeout + more)
}

// sendTimedOut ends the connection of a peer that does not finish its Send.
func (q *Machine) sendTimedOut() {
	q.sendBy = time.Time{}
	placed := q.queues[rdmap.QNSend].Placed()
	q.fail(&Failure{
		Code: rdmap.CodeCatastrophicStream, Err: ErrTimeout, Op: rdmap.OpSend, HasOp: true, Offset: q.rxOffset(),
		Reason: fmt.Sprintf("a Send was begun and is not complete within %v: it has %s so far, and holds a shared receive", q.cfg.SendTimeout, wording.Bytes(placed)),
	}, nil)
}
