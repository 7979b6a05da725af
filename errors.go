package iwarp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/rdmap"
)

// Errors that others wrap: ask with errors.Is. First those of a call that was not carried out and has changed nothing,
// except that with ErrEarly and ErrEvicted the connection is closed.
var (
	// ErrQueueFull: wait for completions, use QP.Submit, or create the QP with deeper queues.
	ErrQueueFull = engine.ErrQueueFull
	// ErrBadState: the state of the QP, or of another object, does not allow the call.
	ErrBadState = engine.ErrBadState
	// ErrInvalid: an argument is invalid; the error that wraps it says which.
	ErrInvalid = errors.New("invalid argument")
	// ErrLimit is wrapped by every *LimitError.
	ErrLimit = errors.New("limit of the RNIC reached")
	// ErrVersion: the kind of the RNIC, or the QP's attributes, do not allow this version of DDP and RDMAP.
	// The draft draft-carrier-rddp-rnic-interop-00, section 6.2, adds it and the next one to the RDMA verbs.
	ErrVersion = errors.New("DDP/RDMAP version not supported")
	// ErrMarkersRequired: markers cannot be disabled, as an RDMAC RNIC always uses them or the peer asks for them.
	ErrMarkersRequired = errors.New("disabling markers not supported")
	// ErrNoReads: a Read or an Atomic Operation on a connection whose negotiated ORD is 0. This side has offered none
	// (Offer.ORD, NoReads), or the peer's IRD is 0. A Read that was posted in StateIdle, when the ORD was not known,
	// ends the connection with StatusNoReadResources.
	ErrNoReads = engine.ErrNoReads
	// ErrNoExtensions: an Atomic Operation, or Immediate Data, on a connection of version 0, which
	// has none (RFC 7306, section 4.1).
	ErrNoExtensions = engine.ErrNoExtensions
	// ErrRiskyRecv: before this Recv a message would have ended the connection.
	ErrRiskyRecv = errors.New("no receive is posted, and a message that comes before Recv would end the connection: " +
		"set QPConfig.Receives and call Receive, set QPConfig.RNR, or post receives in Prepare and take them from the CQ")
	// ErrHeldBack: the answer is behind messages that nobody receives; see Receives.Timeout.
	ErrHeldBack = errors.New("messages wait to be received, and the answer of the peer is behind them: " +
		"call Receive, in another goroutine")
	// ErrEarly: the peer sent bytes between its Request and our answer; see ListenConfig.TolerateEarly.
	ErrEarly = errors.New("the peer sent bytes between its Request and our answer")
	// ErrEvicted: a Listener has closed the connection, which owed a frame after our
	// answer, to make room for a new one; see ListenConfig.MaxHalfOpen.
	ErrEvicted = admission.ErrEvicted

	// ErrClosed: the object was closed, or its connection has ended, in whatever way. It is net.ErrClosed.
	// The errors of flushed completions wrap it, too.
	ErrClosed = net.ErrClosed
	// ErrPeerClosed: the peer was the first to close the connection in order. io.EOF is narrower: the whole end was
	// orderly.
	ErrPeerClosed = engine.ErrPeerClosed
	// ErrConnectionLost: the connection was lost, or the peer has closed it in the middle of something. In the second
	// case the error may be a TerminateError, too.
	ErrConnectionLost = engine.ErrLost
	// ErrIdle: QPConfig.IdleTimeout has passed.
	ErrIdle = errors.New("nothing was sent or received")
	// ErrGap: a segment did not come within QPConfig.GapTimeout.
	ErrGap = engine.ErrGap
	// ErrNoRTR: the peer owed its RTR indication for ListenConfig.RTRTimeout.
	ErrNoRTR = errors.New("the peer did not send its RTR indication")
	// ErrAwaitingInitiator: a Responder's Send, Write, Read or Close, whose requests were not sent because the Initiator
	// has not sent its first FPDU. With the client-server model (A=0), or an MPA revision before 2, it has to send first;
	// with peer-to-peer it owes its RTR indication. Let it send, have it ask for peer-to-peer, or see QPConfig.SendEarly.
	ErrAwaitingInitiator = engine.ErrMute
	// ErrCQOverflow: the Completion Queue had no room left, which ends its QPs.
	ErrCQOverflow = errors.New("completion queue overflow: " + overflowAdvice)
	// ErrNoQP: every QP that the Completion Queue had has ended. It wraps ErrClosed.
	ErrNoQP = error(ended("every QP of the completion queue has ended"))
)

const overflowAdvice = "poll it, or create it deeper"

// errCQLost is the error of calls on a CQ that has overflowed. It wraps ErrCQOverflow and ErrClosed.
var errCQLost error = overflowed{}

type overflowed struct{}

// Error says what is left to do.
func (overflowed) Error() string {
	return "the CQ has overflowed, and takes nothing more: close it when its QPs are closed, and create another, as " +
		"deep as Committed says"
}

// Is makes it both.
func (overflowed) Is(target error) bool { return target == ErrCQOverflow || target == net.ErrClosed }

// ended is the error of an end that the consumer asked for, of a connection or of another object.
type ended string

const (
	errAborted  = ended("aborted by the consumer")
	errReleased = ended("the QP was closed")

	errRNICClosed     = ended("the RNIC was closed")
	errPDClosed       = ended("the Protection Domain was closed")
	errCQClosed       = ended("the CQ was closed")
	errSRQClosed      = ended("the SRQ was closed")
	errListenerClosed = ended("the Listener was closed")
	errDeregistered   = ended("the memory was deregistered")
	errFreed          = ended("the Memory Window was deallocated")
)

// inUse returns the error of closing an object that QPs use.
func inUse(qps int) error {
	return fmt.Errorf("%w: QPs that use it: %d; close them first", ErrBadState, qps)
}

// Error says how the consumer asked for it.
func (e ended) Error() string { return string(e) }

// Is makes it a net.ErrClosed.
func (e ended) Is(target error) bool { return target == net.ErrClosed }

// An OpError says which call failed, and on what.
type OpError struct {
	Op   string   // "dial", "listen", "accept", ...
	Addr net.Addr // the peer, if it is known; of Listener.Accept, what is listened on
	To   string   // its address as the caller gave it
	Err  error
}

var errNoConnGiven = fmt.Errorf("%w: the connection is nil", ErrInvalid)

// with returns the error of a call that failed with err, and nil if it did not fail.
func (e *OpError) with(err error) error {
	if err == nil {
		return nil
	}
	e.Err = err
	return e
}

// Error names the package, the call and the peer, and then the cause.
func (e *OpError) Error() string { return "iwarp: " + e.text() }

func (e *OpError) text() string {
	s := e.Op
	switch {
	case e.Addr != nil:
		s += " " + e.Addr.String()
	case e.To != "":
		s += " " + e.To
	}
	return s + ": " + e.why()
}

// why is the cause's text.
func (e *OpError) why() string {
	//nolint:errorlint // One that is wrapped has text around it that would be lost.
	if n, ok := e.Err.(*net.OpError); ok && n.Op == e.Op { // which names call and address too
		return text(n.Err)
	}
	return text(e.Err)
}

// A texter is an error of this package. Its text does not name the package: Error does, once and in
// front.
type texter interface{ text() string }

// text returns an error's text for embedding in that of another: without the package's name.
func text(err error) string {
	if t, ok := err.(texter); ok {
		return t.text()
	}
	return err.Error()
}

// Brief returns the text of an error of this package for use within that of another, which names what failed itself:
// without the package's name, and where the error is an *OpError of the call op, without the call and the peer. It is
// false for an error of another type, even one that wraps such an error.
func Brief(op string, err error) (string, bool) {
	//nolint:errorlint // One that is wrapped has text around it that would be lost.
	switch e := err.(type) {
	case *OpError:
		if e.Op == op {
			return e.why(), true
		}
		return e.text(), true
	case texter:
		return e.text(), true
	}
	return "", false
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was a timeout.
func (e *OpError) Timeout() bool { return isTimeout(e.Err) }

// Temporary is there for net.Error. It reports false.
func (e *OpError) Temporary() bool { return false }

// Is reports a timeout as os.ErrDeadlineExceeded.
func (e *OpError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded && e.Timeout()
}

var _ net.Error = (*OpError)(nil)

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// A TerminateError ends a connection because of an error that this side found
// or that the peer reported, with the codes of RFC 5040, section 4.8.
type TerminateError struct {
	// Code is Layer, Error Type and Error Code.
	Code rdmap.Code
	// Remote tells that the peer found the error and sent the Terminate.
	Remote bool
	// Op is the RDMAP message in error, if HasOp is set.
	Op    rdmap.Opcode
	HasOp bool
	// Offset is where the FPDU in error begins, in bytes since Full Operation began
	// in its direction; over a SegmentStream it is the number of the segment. It is set
	// only for errors that were found here.
	Offset uint64
	reason string
	err    error
}

// Error names layer and code, who found it, where and why.
func (e *TerminateError) Error() string { return "iwarp: " + e.text() }

func (e *TerminateError) text() string { return e.reason }

// Unwrap returns net.ErrClosed and the layer's own error.
func (e *TerminateError) Unwrap() []error {
	if e.err == nil {
		return []error{net.ErrClosed}
	}
	return []error{net.ErrClosed, e.err}
}

// A ConnectionError ends a connection without a Terminate: it was closed in order, TCP
// or the SCTP association was lost, the peer did not do its part of a close, or this side gave it up.
type ConnectionError struct {
	// Err wraps ErrConnectionLost if the connection was lost, and ErrPeerClosed if the
	// peer was the first to close it in order.
	Err error
}

// Error says what happened.
func (e *ConnectionError) Error() string { return "iwarp: " + e.text() }

func (e *ConnectionError) text() string { return e.Err.Error() }

// Unwrap returns net.ErrClosed and the cause.
func (e *ConnectionError) Unwrap() []error { return []error{net.ErrClosed, e.Err} }

// Timeout reports whether the cause was a timeout.
func (e *ConnectionError) Timeout() bool {
	return errors.Is(e.Err, engine.ErrTimeout) || isTimeout(e.Err)
}

// Temporary is there for net.Error. It reports false.
func (e *ConnectionError) Temporary() bool { return false }

// Is reports a timeout as os.ErrDeadlineExceeded, and an orderly end by the peer as io.EOF.
func (e *ConnectionError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded && e.Timeout() ||
		target == io.EOF && errors.Is(e.Err, ErrPeerClosed) && orderly(e.Err)
}

// publicError converts the engine's causes to the public types.
func publicError(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*engine.Failure](err); ok {
		return &TerminateError{
			Code: f.Code, Remote: f.Peer, Op: f.Op, HasOp: f.HasOp, Offset: f.Offset, reason: f.Error(), err: f.Err,
		}
	}
	return &ConnectionError{Err: err}
}

// A WCError is the error of a work completion.
type WCError struct {
	Status Status
	Op     Op
	ID     uint64
	// Cause is why the connection ended, if it did: see QP.Err. Where the peer has
	// closed its half only, receives end with ErrPeerClosed while the QP can still send.
	Cause error
}

// Error names operation, status and cause.
func (e *WCError) Error() string { return "iwarp: " + e.text() }

func (e *WCError) text() string {
	s := e.Op.String()
	if e.ID != 0 {
		s += fmt.Sprintf(" (work request %d)", e.ID)
	}
	s += ": " + e.Status.String()
	if e.Cause != nil {
		s += ": " + text(e.Cause)
	}
	return s
}

// Unwrap returns the cause.
func (e *WCError) Unwrap() error { return e.Cause }

// An endedError is the error of a call on a QP whose connection has ended, or is being closed
// by Close. It wraps ErrClosed, ErrBadState, and the reason.
type endedError struct {
	state    State
	cause    error // nil: there was no connection, or nobody knows yet how it will end
	released bool  // the QP itself was closed
	peer     bool  // where cause is nil: the peer was the first to close, however it will end
	lingered bool  // our direction ended by itself, after the peer's
}

// afterPeer tells a consumer what to set to go on sending after the peer has closed its half, as one can over sockets.
const afterPeer = "our direction, too, has ended, as nothing was left to be sent (QPConfig.Linger): " +
	"QPConfig.HalfClose keeps it open until Close"

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
		return []error{net.ErrClosed, ErrBadState, ErrPeerClosed, io.EOF}
	case e.cause == nil:
		return []error{net.ErrClosed, ErrBadState}
	}
	return []error{net.ErrClosed, ErrBadState, e.cause}
}

// Cause returns why the connection ended, if err is the result of that end; otherwise err. It leaves out the advice.
// Such an err is that of a completion of the QP, of a wait for its completions, or of a call on it after the end.
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

// refused turns the engine's error for a post into the public one.
func refused(err error) error {
	if errors.Is(err, engine.ErrPeerClosed) {
		return publicError(err)
	}
	return err
}

// cutOff is the error of a transfer whose peer has closed the connection. It is no io.EOF, as that is the end of a
// Region.
type cutOff struct{ error }

func (e cutOff) Is(target error) bool {
	return target == io.ErrUnexpectedEOF || target != io.EOF && errors.Is(e.error, target)
}

func (e cutOff) As(target any) bool { return errors.As(e.error, target) }
