package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A part is the end of our half after the peer's, where the LLP tells how it goes (Params.TellsEnd). Like any close it
// is bounded by Config.CloseTimeout without progress, which is that the peer acknowledges octets, and by
// Config.CloseLimit.
type part struct {
	asked   bool      // Part was
	over    bool      // Parted was called
	owed    int       // octets that the peer has not acknowledged, our FIN apart; negative: not known
	limitBy time.Time // zero: none
}

// parts reports whether our half has ended, as far as the LLP tells, and has it tell.
func (q *QP) parts(now time.Time) bool {
	p := &q.part
	if !q.TellsEnd || p.over || q.state != Closing {
		return true
	}
	if !p.asked {
		p.asked, p.owed, p.limitBy, q.llp = true, -1, q.drain.limitBy, Part
		if p.limitBy.IsZero() && q.cfg.CloseLimit > 0 {
			p.limitBy = now.Add(q.cfg.CloseLimit)
		}
		q.renewPart(now)
	}
	return false
}

func (q *QP) renewPart(now time.Time) {
	q.closeBy = earlier(now.Add(q.cfg.CloseTimeout), q.part.limitBy)
}

// Parting reports whether Part is under way.
func (q *QP) Parting() bool { return q.part.asked && !q.part.over && q.state == Closing }

// Owed reports how many octets of ours, our FIN apart, the peer has not acknowledged while Part is under way. It is to
// be called at each deadline, if the LLP knows: a connection that ends with some is lost.
func (q *QP) Owed(now time.Time, octets int) {
	if p := &q.part; q.Parting() && (p.owed < 0 || octets < p.owed) {
		p.owed = octets
		q.renewPart(now)
	}
}

// Parted reports that our half has ended in order, after Part.
func (q *QP) Parted(now time.Time) {
	q.part.over = true
	q.settle(now)
}

// partTimedOut gives up waiting for the peer to acknowledge our half. If nothing but the FIN is missing the peer has
// everything, and the LLP goes on telling it.
func (q *QP) partTimedOut() {
	const text = "the peer has closed its half, and not acknowledged %s of ours within %v: %w: %w"
	switch p := &q.part; {
	case p.owed <= 0:
		q.end(Drop)
	case q.closeBy.Equal(p.limitBy):
		q.abort(fmt.Errorf(text, wording.Octets(p.owed), q.cfg.CloseLimit, ErrLost, ErrTimeout))
	default:
		q.abort(fmt.Errorf(text, wording.Octets(p.owed), q.cfg.CloseTimeout, ErrLost, ErrTimeout))
	}
}
