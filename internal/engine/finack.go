package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A finAckWait is the end of our half after the peer's, where the LLP tells how it goes (Params.TellsEnd). Like any
// close it is bounded by Config.CloseTimeout without progress, which is that the peer acknowledges bytes, and by
// Config.CloseLimit.
type finAckWait struct {
	asked   bool      // AwaitFINAck was
	over    bool      // FINAcked was called
	owed    int       // bytes that the peer has not acknowledged, our FIN apart; negative: not known
	limitBy time.Time // zero: none
}

// finAcked reports whether our half has ended, as far as the LLP tells, and has it tell.
func (q *Machine) finAcked(now time.Time) bool {
	p := &q.finAck
	if !q.TellsEnd || p.over || q.state != Closing {
		return true
	}
	if !p.asked {
		p.asked, p.owed, q.llp = true, -1, AwaitFINAck
		if q.closing() {
			p.limitBy = q.drain.limitBy
		}
		if p.limitBy.IsZero() && q.cfg.CloseLimit > 0 {
			p.limitBy = now.Add(q.cfg.CloseLimit)
		}
		q.renewFINAck(now)
	}
	return false
}

func (q *Machine) renewFINAck(now time.Time) {
	q.closeBy = earlier(now.Add(q.cfg.CloseTimeout), q.finAck.limitBy)
}

// AwaitsFINAck reports whether our half has ended after the peer's, and the acknowledgement of our FIN is awaited.
func (q *Machine) AwaitsFINAck() bool { return q.finAck.asked && !q.finAck.over && q.state == Closing }

// Unacked is told, while the Machine AwaitsFINAck, how many bytes of ours are not acknowledged, our FIN apart. It is
// to be called at each deadline, if the LLP knows: a connection that ends with some is lost.
func (q *Machine) Unacked(now time.Time, n int) {
	if p := &q.finAck; q.AwaitsFINAck() && (p.owed < 0 || n < p.owed) {
		p.owed = n
		q.renewFINAck(now)
	}
}

// FINAcked reports that our half has ended in order: the peer has acknowledged our FIN.
func (q *Machine) FINAcked(now time.Time) {
	q.finAck.over = true
	q.advance(now)
}

// finAckTimedOut gives up waiting for the peer to acknowledge our half. If nothing but the FIN is missing the peer has
// everything, and the LLP goes on telling it.
func (q *Machine) finAckTimedOut() {
	const text = "the peer has closed its half, and not acknowledged %s of ours within %v: %w: %w"
	switch p := &q.finAck; {
	case p.owed <= 0:
		q.leaveClosing(Drop)
	case q.closeBy.Equal(p.limitBy):
		q.abort(fmt.Errorf(text, wording.Bytes(p.owed), q.cfg.CloseLimit, ErrLost, ErrTimeout))
	default:
		q.abort(fmt.Errorf(text, wording.Bytes(p.owed), q.cfg.CloseTimeout, ErrLost, ErrTimeout))
	}
}
