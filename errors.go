package iwarp

import (
	"errors"
	"fmt"
	"net"

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
)

// ErrConnectionLost is wrapped by the error of a connection that ended without
// an orderly close and without a Terminate.
var ErrConnectionLost = engine.ErrLost

// ErrCQOverflow ends the QPs of a Completion Queue that had no room left.
var ErrCQOverflow = errors.New("completion queue overflow: poll it, or create it deeper")

// An OpError says which call failed, and on what.
type OpError struct {
	Op   string   // "dial", "listen", "accept", ...
	Addr net.Addr // the peer, if it is known
	To   string   // its address as the caller gave it
	Err  error
}

// Error begins with the package's name and the call's.
func (e *OpError) Error() string {
	s := "iwarp: " + e.Op
	switch {
	case e.Addr != nil:
		s += " " + e.Addr.String()
	case e.To != "":
		s += " " + e.To
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was a timeout.
func (e *OpError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

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

// publicError turns the engine's failures into TerminateErrors.
func publicError(err error) error {
	var f *engine.Failure
	if !errors.As(err, &f) {
		return err
	}
	return &TerminateError{Code: f.Code, Remote: f.Peer, Op: f.Op, HasOp: f.HasOp, Offset: f.Offset, text: f.Error(), err: f.Err}
}

// A RejectError is a peer's refusal (an MPA Reply with R=1). TCP is still open
// and belongs to whoever gets the error: use Conn as a byte stream, or close it.
type RejectError struct {
	*mpa.RejectError
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
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *WCError) Unwrap() error { return e.Cause }
