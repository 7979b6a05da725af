package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// maxNudges bounds how often a silent peer is nudged on one connection.
const maxNudges = 6

// maxNudgeDelay bounds what a long path adds to the first delay.
const maxNudgeDelay = time.Second

// armNudge starts the clock when the Initiator's first FPDU has left.
//
// Linux's siw, as a Responder, sends its Reply before it hooks the socket to
// the QP: FPDUs that arrive in between lie unread until another segment comes.
// So an Initiator that has heard nothing shortly after its first FPDU sends a
// zero-length RDMA Write, which every peer has to accept and no consumer hears of, and
// a few more at growing distances. A peer that answers is never nudged.
//
// Not every peer does accept it. RFC 5041, section 5.2, forbids a receiver to check the STag
// of such a Write; one that does ends the connection. So only peers that are taken for siw
// are nudged.
func (q *Machine) armNudge(now time.Time) {
	if q.Layer == LayerMessages || q.Role != mpa.RoleInitiator || q.heard || q.state != RTS {
		return
	}
	if !q.nudgeAt.IsZero() || q.nudged > 0 || q.sent == 0 {
		return
	}
	switch {
	case q.Nudge > 0:
		q.nudgeAt = now.Add(q.nudgeDelay())
	case q.Silence > 0:
		q.nudgeAt = now.Add(q.Silence)
	}
}

// nudgeDelay is how long a silent peer is given: time for an answer at least, or a
// nudge is on its way to a peer that is not silent at all; and one that closes holds its
// FIN back for a round trip first. What is known of the path may include the time that
// the peer's consumer took, so that there is a bound.
func (q *Machine) nudgeDelay() time.Duration { return max(q.Nudge, min(3*q.RTT, maxNudgeDelay)) }

// nudge asks for a zero-length Write and quadruples the distance to the next, or tells of the
// silence, once.
func (q *Machine) nudge(now time.Time) {
	q.nudgeAt = time.Time{}
	if q.state != RTS || !q.mayTransmit() || q.peerClosed || q.nudged == maxNudges {
		return
	}
	q.nudged++
	if q.Nudge <= 0 {
		q.notice(Notice{Kind: NoticeSilent})
		return
	}
	q.nudges++
	q.stats.Nudges++
	q.notice(Notice{Kind: NoticeNudge})
	if q.nudged < maxNudges {
		q.nudgeAt = now.Add(q.nudgeDelay() << (2 * q.nudged))
	}
}

// afterNudges says of the loss of a connection that nudges may have been the reason, where
// nothing was heard after them.
func (q *Machine) afterNudges(lost error) error {
	if q.Nudge <= 0 || q.nudged == 0 || q.heard {
		return lost
	}
	return fmt.Errorf("%w (after an empty RDMA Write that was to wake up a silent peer: "+
		"if the peer refuses such Writes, set QPConfig.Nudge to -1, which sends none)", lost)
}

// sendNudge builds the zero-length Write that was asked for.
func (q *Machine) sendNudge(g *Gather) bool {
	q.nudges--
	before := len(g.arena)
	q.sendEmptyWrite(g)
	g.nudge += len(g.arena) - before
	return true
}

// countEmptyWrite counts a Write that carries nothing as odd, but for those of an Initiator that may be an RTR
// indication and the nudges of one like ours.
func (q *Machine) countEmptyWrite() {
	if q.Role == mpa.RoleResponder && q.Layer != LayerMessages && q.excused <= maxNudges {
		q.excused++
		return
	}
	q.stats.Odd.Empty++
}
