package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// ErrLost reports a connection that ended without an orderly close.
var ErrLost = errors.New("TCP connection lost")

// ErrVersions reports a connection whose DDP and RDMAP are not of the same version, or
// not of a known one.
var ErrVersions = errors.New("versions of DDP and RDMAP that do not go together")

// ErrTimeout reports a peer that did not play its part in time.
var ErrTimeout = errors.New("timed out")

// BeginClose asks for an orderly close: no more work is taken, what is there is
// carried out, then the connection is closed.
func (q *QP) BeginClose(now time.Time) {
	q.draining = q.draining || q.state == RTS
	q.settle(now)
}

// BeginHalfClose asks for a FIN once all work is carried out. Receiving goes on
// until the peer closes its half too.
//
// RFC 5041, section 6.2.1: when the ULP closes its half only, DDP goes on
// receiving. [D33]
func (q *QP) BeginHalfClose(now time.Time) {
	q.halving = q.halving || q.state == RTS
	q.settle(now)
}

// Abort ends the connection at once, with a reset.
func (q *QP) Abort(cause error) {
	q.abort(cause)
}

// Modify carries out a transition that the consumer asks for: from RTS to
// Closing, Terminate or Error, from Error to Idle, from Idle to Error. To RTS
// goes Connect.
func (q *QP) Modify(now time.Time, to State) error {
	// "refused while flushing" (RDMA verbs 6.2, Error).
	if !MayAsk(q.state, to) || to == Idle && q.inFlight {
		return fmt.Errorf("from %v to %v: %w", q.state, to, ErrBadState)
	}
	switch to {
	case Closing:
		q.beginClosing()
	case Terminate:
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Reason: "the consumer asked for it"}, nil)
	case Error:
		q.abort(errors.New("aborted by the consumer"))
	case Idle:
		q.stream = stream{llp: q.llp}
		q.setState(Idle)
	}
	q.settle(now)
	return nil
}

// beginClosing enters Closing. Work or Reads under way make it a bad close; a
// Ready-to-Receive indication, of which the consumer knows nothing, is waited for.
func (q *QP) beginClosing() {
	switch {
	case !q.sq.empty() || q.irrq.Len() > 0:
		q.setState(Closing)
		q.badClose()
	case q.idle():
		q.setState(Closing)
	default:
		q.draining = true
	}
}

// badClose resets a connection on which there was work, or octets still came,
// when it was being closed (RDMA verbs 6.2, Closing).
func (q *QP) badClose() {
	q.notice(Notice{Kind: NoticeBadClose})
	q.abort(fmt.Errorf("closed while work was under way: %w", ErrLost))
}

// PeerClosed reports the peer's FIN.
//
// RFC 5041, section 6.2.1: after a half-close "outbound data goes on"; what is
// queued, the peer's Reads included, is finished before this half is closed.
// [D32] What can no longer come is an error: the rest of an FPDU, and the
// responses to our Reads.
func (q *QP) PeerClosed(now time.Time, unread int) {
	q.peerClosed = true
	switch {
	case q.state == RTS:
		q.halfClosed(unread)
	case q.state == Closing && unread > 0:
		q.badClose()
	}
	q.settle(now)
}

// halfClosed judges a FIN in RTS. A Responder that has heard nothing can never
// send: with work posted the connection has failed, without it is just over, unless
// the peer has left because of our answer.
func (q *QP) halfClosed(unread int) {
	mute := !q.SendFirst && !q.heard
	switch {
	case unread > 0:
		q.abort(fmt.Errorf("peer closed in the middle of an FPDU, %d octets into it: %w", unread, ErrLost))
	case q.orq.Len() > 0:
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Reason: "peer closed while RDMA Reads were outstanding"}, nil)
	case q.partial != [2]bool{}:
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Reason: "peer closed in the middle of a message"}, nil)
	case mute && q.unlike():
		q.deserted()
	case mute && !q.sq.empty():
		q.abort(fmt.Errorf("peer closed before it sent an FPDU: %w", ErrLost))
	default:
		q.notice(Notice{Kind: NoticeHalfClosed})
		q.draining = q.draining || q.halving || mute || !q.cfg.HalfClose
	}
}

// unlike reports startup frames of different revisions: whoever got the later one may
// not have liked it.
func (q *QP) unlike() bool { return !q.heard && q.Revision != q.PeerRevision }

// deserted ends a connection that the peer has closed in order before its first FPDU,
// by all appearance on our answer. There is nobody to send a Terminate to, nor may we
// send one: our half is closed as the peer's was.
//
// CARRIER, Section 5.2.2: "The Non-permissive IETF RNIC will gracefully close the
// connection after it reads the incompatible Rev field in the MPA Reply Frame." [N03]
func (q *QP) deserted() {
	q.cause = fmt.Errorf("the peer closed the connection before its first FPDU: %w: %s", ErrLost, q.difference())
	q.notice(Notice{Kind: NoticeConnectionLost, Err: q.cause})
	q.setState(Terminate)
}

// difference names the revisions of both sides.
func (q *QP) difference() string {
	s := fmt.Sprintf("its startup frame was of revision %d and ours of revision %d", q.PeerRevision, q.Revision)
	if q.DDPVersion == 0 {
		s += ", with DDP and RDMAP version 0, which a non-permissive IETF RNIC does not have"
	}
	return s
}

// Failed reports that the connection is lost: a reset, a time-out. If octets
// are in flight, Abandon is to be called too.
func (q *QP) Failed(now time.Time, err error) {
	switch q.state {
	case RTS, Closing:
		cause := fmt.Errorf("%w: %w", ErrLost, err)
		if q.state == RTS && q.unlike() {
			cause = fmt.Errorf("%w (before the peer's first FPDU; %s)", cause, q.difference())
		}
		q.abort(cause)
	case Terminate:
		q.end(Drop)
	}
	q.settle(now)
}

// abort goes to Error at once; the connection is reset.
func (q *QP) abort(cause error) {
	if q.state == Error {
		return
	}
	if q.cause == nil {
		q.cause = cause
	}
	if errors.Is(cause, ErrLost) {
		q.notice(Notice{Kind: NoticeConnectionLost, Err: cause})
	}
	connected := q.state != Idle
	q.setState(Error)
	q.flush()
	q.closeBy, q.nudgeAt = time.Time{}, time.Time{}
	if connected {
		q.llp = Reset
	}
}

// settle moves on whatever waits for octets to be gone.
func (q *QP) settle(now time.Time) {
	switch {
	case q.state == RTS && q.idle():
		q.drained()
	case q.state == Error:
		q.flush() // what was in flight when the connection ended
	}
	if q.state != Terminate && q.state != Closing {
		return
	}
	if q.closeBy.IsZero() {
		q.closeBy = now.Add(q.cfg.CloseTimeout)
	}
	if q.inFlight || q.term != nil && !q.termSent {
		return
	}
	q.flush()
	if !q.finished {
		q.finished, q.llp = true, Finish
	}
	if q.peerClosed {
		q.end(Drop)
	}
}

// drained goes on with a close that waited for the work to be finished.
func (q *QP) drained() {
	switch {
	case q.draining:
		q.setState(Closing)
	case q.halving && !q.finished:
		q.finished, q.llp = true, Finish
	}
}

// idle reports that nothing is left to send or to wait for: neither work nor
// Reads of either side, the Ready-to-Receive indication included. That of the
// peer would be taken for a bad close if it came behind our FIN.
func (q *QP) idle() bool {
	owed := q.Role == mpa.RoleResponder && q.PeerToPeer && !q.heard && !q.peerClosed
	return q.sq.empty() && q.irrq.Len() == 0 && q.orq.Len() == 0 && !q.inFlight && q.rtr == 0 && !owed
}

// end leaves Terminate or Closing: the connection is gone. In Idle all is as
// before it, and work can be posted for the next.
func (q *QP) end(how LLP) {
	if q.state == Closing {
		q.notice(Notice{Kind: NoticeCloseComplete})
		q.stream = stream{Params: q.Params, llp: how}
		q.setState(Idle)
		return
	}
	q.llp, q.closeBy, q.nudgeAt = how, time.Time{}, time.Time{}
	q.setState(Error)
	q.flush()
}

// closeTimedOut gives up on a peer that does not close its half.
func (q *QP) closeTimedOut() {
	switch q.state {
	case Closing:
		q.abort(fmt.Errorf("peer did not close its half within %v: %w: %w", q.cfg.CloseTimeout, ErrLost, ErrTimeout))
	case Terminate:
		q.end(Reset)
	}
}

// LLP returns what is to become of the connection, once for each change.
func (q *QP) LLP() LLP {
	l := q.llp
	q.llp = Keep
	return l
}
