package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// ErrLost reports a connection that ended without an orderly close.
var ErrLost = errors.New("connection lost")

// ErrVersions reports a connection whose DDP and RDMAP are not of the same version, or
// not of a known one.
var ErrVersions = errors.New("versions of DDP and RDMAP that do not go together")

// ErrTimeout reports a peer that did not play its part in time.
var ErrTimeout = errors.New("timed out")

// ErrAborted is the cause of an end that Modify to Error has brought about.
var ErrAborted = errors.New("aborted by the consumer")

// Orderly ends, by the side that was the first to close. They are a Cause, but nothing
// went wrong.
var (
	ErrClosedHere = errors.New("the connection was closed in order")
	ErrPeerClosed = errors.New("the peer closed the connection in order")
)

// BeginClose asks for a graceful close. No more work is taken. What was posted is
// carried out and what the peer has asked to read is answered; then a FIN is sent, when
// the peer has asked for nothing more during rtt, a round trip (zero: not known, there is
// no wait): see quiet.go. Until the peer's FIN, what it sends is received, placed and
// delivered, and a Terminate surfaced. After that the connection is over.
//
// The close is bounded by Config.CloseTimeout without progress, and by
// Config.CloseLimit: see drain.go.
//
// RFC 5041, section 6.2.1: on a graceful teardown by the ULP, DDP "SHOULD ensure that
// all ULP data would be transferred before the underlying LLP Stream and Connection are
// torn down, and any further data transfer requests by the Local Peer ULP MUST return
// an error".
func (q *Machine) BeginClose(now time.Time, rtt time.Duration) {
	if q.state == RTS && !q.closing() {
		q.endedBy(ErrClosedHere)
		q.beginDrain(now, rtt)
		q.abandonMute()
		q.closesRNR(now)
	}
	q.advance(now)
}

// BeginHalfClose asks for a FIN once all work is carried out. Receiving goes on
// until the peer closes its half too.
//
// RFC 5041, section 6.2.1: "on the receipt of a ULP graceful half-closed teardown
// request of the DDP Stream, DDP SHOULD keep data reception enabled on the other half
// of the LLP Stream."
func (q *Machine) BeginHalfClose(now time.Time) {
	if q.state == RTS {
		q.halving = true
		q.endedBy(ErrClosedHere)
	}
	q.advance(now)
}

// endedBy notes which side was the first to close in order.
func (q *Machine) endedBy(side error) {
	if q.orderly == nil {
		q.orderly = side
	}
}

// Lingered reports whether our half has ended by itself after the peer's, as there was nothing to send for Linger:
// nobody here had asked for its end.
func (q *Machine) Lingered() bool { return q.lingered }

// Abort ends the connection at once, with a reset.
func (q *Machine) Abort(cause error) {
	q.abort(cause)
}

// Modify carries out a transition that the consumer asks for: from RTS to
// Closing, Terminate or Error, from Error to Idle, from Idle to Error. Connect is what
// leads to RTS.
func (q *Machine) Modify(now time.Time, to State) error {
	// "refused while flushing" (RDMA verbs 6.2, Error).
	if !MayAsk(q.state, to) || to == Idle && q.inFlight {
		return fmt.Errorf("from %v to %v: %w", q.state, to, ErrBadState)
	}
	switch to {
	case Closing:
		q.beginClosing(now)
	case Terminate:
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Reason: "the consumer asked for it"}, nil)
	case Error:
		q.abort(ErrAborted)
	case Idle:
		llp := q.llp
		q.stream = stream{}
		q.llp, q.cause, q.orderly, q.lingered = llp, nil, nil, false
		q.setState(Idle)
	}
	q.advance(now)
	return nil
}

// beginClosing enters Closing as the RDMA verbs have it, without draining. Work or
// Reads under way make it a bad close; a Ready-to-Receive indication, of which the
// consumer knows nothing, is waited for.
func (q *Machine) beginClosing(now time.Time) {
	q.endedBy(ErrClosedHere)
	q.closesRNR(now)
	switch {
	case q.state != RTS: // over what has found no receive
	case q.sq.Len() > 0 || q.irrq.Len() > 0:
		q.setState(Closing)
		q.badClose()
	case q.idle():
		q.setState(Closing)
	default:
		q.strict = true
	}
}

// badClose resets a connection on which there was work, or bytes still came,
// after Modify to Closing (RDMA verbs 6.2, Closing).
func (q *Machine) badClose() {
	q.notice(Notice{Kind: NoticeBadClose})
	q.abort(fmt.Errorf("closed while work was under way: %w", ErrLost))
}

// PeerClosed reports the peer's FIN; unread is how many bytes came before it that
// Input did not take.
//
// RFC 5041, section 6.2.1: "on the receipt of an LLP graceful teardown request of the
// DDP Stream, DDP SHOULD indicate the half-closed state to the ULP, and continue to
// process outbound data transfer requests normally." What can no longer come is
// an error: the rest of an FPDU or message, and the responses to our Reads.
func (q *Machine) PeerClosed(now time.Time, unread int) {
	q.closedHalf(unread)
	q.watchReady(now)
	q.advance(now)
}

func (q *Machine) closedHalf(unread int) {
	if q.endsAfterRNR(unread) {
		return
	}
	q.peerClosed = true
	switch {
	case q.state == RTS:
		q.halfClosed(unread)
	case q.state == Closing && unread > 0:
		q.badClose()
	}
}

// WholeClosed reports that both halves were closed, where the LLP has no others: what
// the peer may have under way is lost.
func (q *Machine) WholeClosed(now time.Time) {
	q.peerClosed = true
	if q.state == RTS {
		q.setState(Closing)
	}
	q.advance(now)
}

// halfClosed judges a FIN in RTS. A Responder that has heard nothing can never
// send: with work posted the connection has failed, without it is just over, unless
// the peer has left because of our answer.
func (q *Machine) halfClosed(unread int) {
	mute := q.awaiting()
	switch {
	case unread > 0:
		q.cutOff(unread)
	case q.orq.Len() > 0 && !q.asksAlone():
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Offset: q.rxOffset(),
			Reason: "peer closed while RDMA Reads or Atomic Operations were outstanding: its program was killed, or closed " +
				"before both had agreed on the end", Err: ErrLost}, nil)
	case q.partial != [2]bool{}:
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Offset: q.rxOffset(),
			Reason: "peer closed in the middle of a message", Err: ErrLost}, nil)
	case mute && q.unlike():
		q.deserted(errors.New(q.difference()))
	case mute && q.sq.Len() > 0:
		q.deserted(q.neverSent())
	default:
		q.unconfirmed()
		q.endedBy(ErrPeerClosed)
		q.notice(Notice{Kind: NoticeHalfClosed})
		q.flushReceives() // nothing more can come
	}
}

// cutOff acts on a FIN inside of an FPDU: the peer is told on our half, if that is open.
//
// RFC 5044, section 8: error code 1, "TCP connection closed, terminated, or lost",
// which RFC 5040, section 4.8 has as layer 2, type 0. [Q16] [R08]
func (q *Machine) cutOff(unread int) {
	reason := fmt.Sprintf("peer closed in the middle of an FPDU, %s into it", wording.Bytes(unread))
	if !q.mayTransmit() {
		q.abort(fmt.Errorf("%s: %w", reason, ErrLost))
		return
	}
	q.fail(&Failure{Code: rdmap.CodeMPAConnectionLost, Offset: q.rxOffset(), Reason: reason, Err: ErrLost}, nil)
}

// unlike reports startup frames of different revisions: whoever got the later one may
// not have liked it.
func (q *Machine) unlike() bool { return !q.heard && q.Revision != q.PeerRevision }

// deserted ends a connection that the peer has closed in order before its first FPDU:
// with revisions that differ by all appearance on our answer, and otherwise while work
// of ours waited for that FPDU. There is nobody to send a Terminate to, nor may we
// send one: our half is closed as the peer's was.
//
// CARRIER, section 5.2.2: "The Non-permissive IETF RNIC will gracefully close the
// connection after it reads the incompatible Rev field in the MPA Reply Frame." [N03]
func (q *Machine) deserted(why error) {
	q.cause = fmt.Errorf("the peer closed the connection before its first FPDU: %w: %w", ErrLost, why)
	q.notice(Notice{Kind: NoticeConnectionLost, Err: q.cause})
	q.setState(Terminate)
}

// difference names the revisions of both sides.
func (q *Machine) difference() string {
	s := fmt.Sprintf("its startup frame was of revision %d and ours of revision %d", q.PeerRevision, q.Revision)
	if q.DDPVersion == 0 {
		s += ", with DDP and RDMAP version 0, which a non-permissive IETF RNIC does not have"
	}
	return s
}

// Failed reports that the connection is lost: a reset, a time-out. If bytes
// are in flight, Abandon is to be called too.
func (q *Machine) Failed(now time.Time, err error) {
	switch q.state {
	case RTS, Closing:
		cause := q.afterNudges(fmt.Errorf("%w: %w", ErrLost, err))
		if q.state == RTS && q.unlike() {
			cause = fmt.Errorf("%w (before the peer's first FPDU; %s)", cause, q.difference())
		}
		q.abort(cause)
	case Terminate:
		q.leaveClosing(Drop)
	}
	q.advance(now)
}

// Undelivered reports, after Drop, that the peer will never have all of our half: the connection was lost after an
// end that looked orderly.
func (q *Machine) Undelivered(err error) {
	q.abort(fmt.Errorf("%w: %w", ErrLost, err))
}

// abort goes to Error at once; the connection is reset.
func (q *Machine) abort(cause error) {
	if q.state == Error {
		return
	}
	q.blame(cause)
	if errors.Is(cause, ErrLost) {
		q.notice(Notice{Kind: NoticeConnectionLost, Err: cause})
	}
	connected := q.state != Idle
	q.setState(Error)
	q.flush()
	if connected {
		q.llp = Reset
	}
}

// advance moves on whatever waits for bytes to be gone, or for the peer.
func (q *Machine) advance(now time.Time) {
	switch q.state {
	case RTS:
		q.advanceRTS(now)
	case Error:
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
	q.finish()
	if q.peerClosed && q.finAcked(now) {
		q.leaveClosing(Drop)
	}
}

// advanceRTS goes on with a close: a FIN when all work is finished, and the end with
// the peer's.
func (q *Machine) advanceRTS(now time.Time) {
	q.renewDrain(now)
	if q.carriedOut {
		q.carriedOut, q.workedAt = false, now
	}
	switch {
	case !q.idle():
		q.lingerBy = time.Time{}
		q.goOnDraining(now)
	case q.strict:
		q.setState(Closing)
	case q.closing() && q.holds(now):
	case q.closing() || q.halving || q.peerClosed && !q.lingers(now):
		q.lingered = q.lingered || !q.closing() && !q.halving
		q.finish()
		q.renewDrain(now)
	}
	if q.finished && q.peerClosed {
		q.setState(Closing)
	}
}

// finish has the driver send a FIN, once.
func (q *Machine) finish() {
	if !q.finished {
		q.finished, q.llp = true, Finish
		q.drain.progress()
	}
}

// idle reports that nothing is left to send or to wait for: neither work nor
// Reads of either side, the Ready-to-Receive indication included. That of the
// peer is waited for: some kernels break where a FIN meets it.
func (q *Machine) idle() bool {
	owed := q.Layer != LayerMessages && q.Role == mpa.RoleResponder && q.PeerToPeer && !q.heard && !q.peerClosed
	return q.sq.Len() == 0 && q.irrq.Len() == 0 && q.orq.Len() == 0 && !q.inFlight && q.rtr == 0 && !owed
}

// leaveClosing leaves Terminate or Closing: the connection is gone, and advance flushes what is left.
// In Idle all is as before it, and work can be posted for the next; but not if requests were given up.
func (q *Machine) leaveClosing(how LLP) {
	if q.state == Closing && q.cause == nil {
		q.notice(Notice{Kind: NoticeCloseComplete})
		p := q.Params
		q.stream = stream{}
		q.Params, q.llp = p, how
		q.setState(Idle)
		return
	}
	q.llp = how
	q.setState(Error)
}

// closeTimedOut gives up on a peer that does not close its half.
func (q *Machine) closeTimedOut() {
	switch q.state {
	case RTS:
		q.drainTimedOut()
	case Closing:
		if q.AwaitsFINAck() {
			q.finAckTimedOut()
			return
		}
		q.abort(fmt.Errorf("peer did not close its half within %v (QPConfig.CloseTimeout): %w: %w", q.cfg.CloseTimeout, ErrLost, ErrTimeout))
	case Terminate:
		q.leaveClosing(Reset)
	}
}

// LLP returns what is to become of the connection, once for each change.
func (q *Machine) LLP() LLP {
	l := q.llp
	q.llp = Keep
	return l
}
