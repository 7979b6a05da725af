package iwarp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Errors of a call that was not carried out; nothing has changed.
var (
	// ErrQueueFull: wait for completions, or create the QP with deeper queues.
	ErrQueueFull = engine.ErrQueueFull
	// ErrBadState: the QP's state does not allow the call.
	ErrBadState = engine.ErrBadState
	// ErrInvalid: an argument makes no sense; the error that wraps it says which.
	ErrInvalid = errors.New("invalid argument")
	// ErrClosed: the object was closed.
	ErrClosed = net.ErrClosed
	// ErrEvicted: a Listener has closed the connection, which owed a frame behind our
	// answer, to make room for a new one; see ListenConfig.MaxHalfOpen.
	ErrEvicted = errors.New("closed half-open to make room for another connection")
)

// ErrConnectionLost is wrapped by the error of a connection that ended without
// an orderly close and without a Terminate.
var ErrConnectionLost = engine.ErrLost

// ErrCQOverflow ends the QPs of a Completion Queue that had no room left.
var ErrCQOverflow = errors.New("completion queue overflow: poll it, or create it deeper")

// ended is an end that the consumer wanted.
type ended string

const (
	errAborted  = ended("aborted by the consumer")
	errReleased = ended("the QP was closed")
)

// Error says who wanted it.
func (e ended) Error() string { return string(e) }

// Is makes it a net.ErrClosed.
func (e ended) Is(target error) bool { return target == net.ErrClosed }

// An OpError says which call failed, and on what.
type OpError struct {
	Op   string   // "dial", "listen", "accept", ...
	Addr net.Addr // the peer, if it is known
	To   string   // its address as the caller gave it
	Err  error
}

// Error begins with the package's name and the call's.
func (e *OpError) Error() string {
	var second *fallbackError
	if errors.As(e.Err, &second) {
		return "iwarp: " + second.Error() // which names peer and call
	}
	s := e.Op
	switch {
	case e.Addr != nil:
		s += " " + e.Addr.String()
	case e.To != "":
		s += " " + e.To
	}
	cause := bare(e.Err)
	if strings.HasPrefix(cause, s) { // the net package has said so too
		return "iwarp: " + cause
	}
	return "iwarp: " + s + ": " + cause
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

// bare is an error's text within that of another error of this package.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "iwarp: ") }

// A TerminateError ends a connection because of an error that this side found
// or that the peer reported, with the codes of RFC 5040, section 4.8.
type TerminateError struct {
	// Code is Layer, Error Type and Error Code.
	Code rdmap.Code
	// Remote: the peer found it and sent the Terminate; otherwise we did.
	Remote bool
	// Op is the RDMAP message in error, if HasOp.
	Op    rdmap.Opcode
	HasOp bool
	// Offset is where the FPDU in error begins, in octets since Full Operation
	// began in its direction. Only for errors found here.
	Offset uint64
	text   string
	err    error
}

// Error names layer and code, who found it, where and why.
func (e *TerminateError) Error() string { return "iwarp: " + e.text }

// Unwrap returns net.ErrClosed and the layer's own error.
func (e *TerminateError) Unwrap() []error {
	if e.err == nil {
		return []error{net.ErrClosed}
	}
	return []error{net.ErrClosed, e.err}
}

// A ConnectionError ends a connection without a Terminate: TCP was lost, the
// peer did not play its part in a close, or this side gave it up.
type ConnectionError struct {
	// Err wraps ErrConnectionLost if the connection was lost.
	Err error
}

// Error says what happened.
func (e *ConnectionError) Error() string { return "iwarp: " + e.Err.Error() }

// Unwrap returns net.ErrClosed and the cause.
func (e *ConnectionError) Unwrap() []error { return []error{net.ErrClosed, e.Err} }

// Timeout reports whether the cause was a timeout.
func (e *ConnectionError) Timeout() bool {
	return errors.Is(e.Err, engine.ErrTimeout) || isTimeout(e.Err)
}

// Temporary is there for net.Error. It reports false.
func (e *ConnectionError) Temporary() bool { return false }

// Is reports a timeout as os.ErrDeadlineExceeded.
func (e *ConnectionError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded && e.Timeout()
}

// publicError gives the engine's causes their public types.
func publicError(err error) error {
	var f *engine.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return &TerminateError{Code: f.Code, Remote: f.Peer, Op: f.Op, HasOp: f.HasOp, Offset: f.Offset, text: f.Error(), err: f.Err}
	}
	return &ConnectionError{Err: err}
}

// A fallbackError is a second attempt, with revision 1, that failed too.
type fallbackError struct {
	addr          string
	first, second error
}

// Error says how the peer refused revision 2, and what became of revision 1.
func (e *fallbackError) Error() string {
	return fmt.Sprintf("responder at %s %s; retried with revision 1: %s", e.addr, refusal(e.first), bare(e.second))
}

// Unwrap returns both causes, the later one first.
func (e *fallbackError) Unwrap() []error { return []error{e.second, e.first} }

// refusal says how a responder refused a revision 2 Request.
func refusal(err error) string {
	var s *mpa.StartupError
	var r *mpa.RejectError
	switch {
	case errors.As(err, &r):
		return "rejected a revision 2 request with an unenhanced reply"
	case errors.As(err, &s) && s.Failure == mpa.FailureMismatch:
		return "answered a revision 2 request with an unenhanced reply"
	}
	return "closed the connection on a revision 2 request"
}

// A RejectError is a peer's refusal (an MPA Reply with R=1). TCP is still open
// and belongs to whoever gets the error: use Conn as a byte stream, or close it.
type RejectError struct {
	*mpa.RejectError
	// Conn is never nil. Where closing TCP is the rejection (Closed, with
	// mpa.DialectStartKey) it is closed here too: reading and writing fail with
	// net.ErrClosed.
	Conn net.Conn
}

// Unwrap returns the MPA layer's error.
func (e *RejectError) Unwrap() error { return e.RejectError }

// A WCError is the error of a work completion.
type WCError struct {
	Status Status
	Op     Op
	ID     uint64
	// Cause is why the connection ended, if it did.
	Cause error
}

// Error names operation, status and cause.
func (e *WCError) Error() string {
	s := fmt.Sprintf("iwarp: %v (work request %d): %v", e.Op, e.ID, e.Status)
	if e.Cause != nil {
		s += ": " + bare(e.Cause)
	}
	return s
}

// Unwrap returns the cause.
func (e *WCError) Unwrap() error { return e.Cause }
