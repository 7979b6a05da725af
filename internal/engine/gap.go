package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/rdmap"
)

// ErrGap reports a segment that did not come, although others came that were sent after it.
var ErrGap = errors.New("a segment is missing")

// watchGap sets the time by which the segment is to come that others wait for. The LLP sees to it that all arrive; a
// peer that leaves out a number would have us wait for ever (RFC 5043, section 6: numbers "MUST NOT have any gaps").
func (q *Machine) watchGap(now time.Time) {
	a := q.ahead
	if q.cfg.GapTimeout <= 0 || q.Layer != LayerMessages || !q.listens() {
		return
	}
	switch missing := (len(a.held) > 0 || a.ending.known && !a.atEnd()) && !q.HoldsBack(); {
	case !missing:
		a.gapBy = time.Time{}
	case a.gapBy.IsZero() || a.gapAt != a.next:
		a.gapAt, a.gapBy = a.next, now.Add(q.cfg.GapTimeout)
	}
}

// gapTimedOut ends the connection of a peer that has left something out. RFC 5043 has no code for that: the one of
// RFC 6581, section 8, serves for all that is wrong with a session (docs/dev/endings.md, "Over SCTP").
func (q *Machine) gapTimedOut() {
	q.ahead.gapBy = time.Time{}
	q.fail(&Failure{
		Code: rdmap.CodeMPALocalCatastrophic, Err: fmt.Errorf("%w: %w", ErrGap, ErrTimeout), Offset: q.ahead.gapAt,
		Reason: fmt.Sprintf("a segment did not come within %v, of those after it %d did",
			q.cfg.GapTimeout, len(q.ahead.held)),
	}, nil)
}
