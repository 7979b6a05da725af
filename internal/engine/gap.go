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
	a := &q.ahead
	missing := (len(a.held) > 0 || a.ending.known && !a.atEnd()) && !q.HoldsBack()
	switch {
	case q.cfg.GapTimeout <= 0 || q.Layer != LayerMessages || !q.listens() || !missing:
		q.gapBy = time.Time{}
	case q.gapBy.IsZero() || q.gapAt != a.next:
		q.gapAt, q.gapBy = a.next, now.Add(q.cfg.GapTimeout)
	}
}

// gapTimedOut ends the connection of a peer that has left something out. RFC 5043 has no code for that: the one of
// RFC 6581, section 8, serves for all that is wrong with a session (docs/dev/endings.md, "Over SCTP").
func (q *Machine) gapTimedOut() {
	q.gapBy = time.Time{}
	q.fail(&Failure{
		Code: rdmap.CodeMPALocalCatastrophic, Err: fmt.Errorf("%w: %w", ErrGap, ErrTimeout), Offset: q.gapAt,
		Reason: fmt.Sprintf("a segment did not come within %v, of those after it %d did",
			q.cfg.GapTimeout, len(q.ahead.held)),
	}, nil)
}
