package iwarp

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/engine"
)

// An endedError is that of a call on a QP whose connection has ended, or is being closed
// by Close. It wraps ErrClosed, ErrBadState, and the reason.
type endedError struct {
	state    State
	cause    error // nil: there was no connection, or nobody knows yet how it will end
	released bool  // the QP itself was closed
	peer     bool  // where cause is nil: the peer was the first to close, however it will end
	lingered bool  // our direction ended by itself, after the peer's
}

// afterPeer says what a consumer that goes on to send when the peer has closed its half, as one of sockets may, has to set.
const afterPeer = "our direction, too, has ended, as nothing was sent for QPConfig.Linger: QPConfig.HalfClose keeps it open until Close"

// Error says what has ended, and why.
func (e *endedError) Error() string {
	switch {
	case e.peer && e.lingered:
		return "the peer has closed its half; " + afterPeer
	case e.peer:
		return "the QP is being closed, as the peer has closed its half"
	case e.cause == nil && (e.state == StateRTS || e.state == StateClosing):
		return "the QP is being closed"
	case e.cause == nil:
		return "the QP was closed"
	case errors.Is(e.cause, errReleased): // which says so
		return text(e.cause)
	case e.released || e.state == StateRTS:
		return "the QP was closed: " + text(e.cause)
	case e.state == StateClosed && e.lingered:
		return text(e.cause) + "; " + afterPeer
	case e.state == StateClosed:
		return text(e.cause) + "; after Modify(StateIdle) the QP can have another connection"
	}
	return fmt.Sprintf("the QP is in state %v: %s", e.state, text(e.cause))
}

// Unwrap returns what the error is.
func (e *endedError) Unwrap() []error {
	switch {
	case e.peer:
		return []error{net.ErrClosed, ErrBadState, ErrPeerClosed}
	case e.cause == nil:
		return []error{net.ErrClosed, ErrBadState}
	}
	return []error{net.ErrClosed, ErrBadState, e.cause}
}

// ended is the error of a call that needs a connection, or one to come, where there is
// none any more; nil otherwise. The caller holds qp.mu.
func (qp *QP) ended() error {
	lingered := qp.eng.Lingered()
	switch s, cause := qp.state(), qp.eng.Cause(); {
	case (qp.closing && s == StateRTS || s == StateClosing) && orderly(publicError(cause)):
		return &endedError{state: s, peer: errors.Is(cause, ErrPeerClosed), lingered: lingered} // whether in order, the end will tell
	case qp.closing, s == StateTerminate, s == StateError, s == StateClosing, s == StateClosed:
		return &endedError{state: s, cause: publicError(cause), released: qp.destroyed, lingered: lingered}
	case qp.destroyed:
		return &endedError{state: s, released: true}
	}
	return nil
}

// stillClosing is that of a call that needs a QP without a connection, where the last one is being closed by code of the consumer's.
func (qp *QP) stillClosing() error { return fmt.Errorf("%w: wait for Done", qp.ended()) }

// Cause returns why the connection ended, where err tells of that: err is the error of a
// completion of the QP, of a wait for its completions, or of a call on it after the end, without what the caller could do about that. It returns any other err as it is.
func (qp *QP) Cause(err error) error {
	var wc *WCError
	var ended *endedError
	switch {
	case errors.As(err, &wc) && wc.Cause != nil:
		return wc.Cause
	case errors.As(err, &ended) && ended.cause != nil:
		return ended.cause
	case errors.As(err, &ended) && ended.peer:
		return ErrPeerClosed
	case errors.Is(err, ErrNoQP):
		return cmp.Or(qp.Err(), err) // which is nil after Modify to StateIdle, and where there was no connection
	}
	return err
}

// refused turns the engine's error of a post into ours.
func refused(err error) error {
	if errors.Is(err, engine.ErrPeerClosed) {
		return publicError(err)
	}
	return err
}
