package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// Errors of calls.
var (
	// ErrClosed: the Controller was closed. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrUnaligned: the offset or the length of something to be changed is no multiple of the block size, or is
	// negative.
	ErrUnaligned = errors.New("not whole blocks of the namespace")
	// ErrRange: it does not lie within the namespace.
	ErrRange = errors.New("beyond the end of the namespace")
	// ErrChanged: after a reconnect the namespace is not what it was. It is of no use any more.
	ErrChanged = errors.New("the namespace is not what it was before the connection was lost")
	// ErrNoNamespace: there is no active namespace with this NSID.
	ErrNoNamespace = errors.New("no such namespace")
)

// A Status is how a command has ended: status code type and code in the lower 11 bits, and flags.
type Status = capsule.Status

// A Reject is what a controller has in a rejecting Reply.
type Reject = ulpdata.NVMeReject

// A StatusError says that the controller has not carried out a command.
type StatusError struct {
	// Command names it.
	Command string
	Status  Status
	// Result is that of the completion: of a Connect it says which field was wrong, see capsule.ConnectOffset.
	Result uint64
}

// Error names the command and the status. If a Connect was refused because of its subsystem, it also says what may be
// wrong.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("nvme: %s: %v", e.Command, e.Status)
	if e.Status&^capsule.DNR == capsule.InvalidParameter &&
		e.Result == capsule.ConnectOffset(capsule.OffsetSubsystem, true) {
		s += ": the target has no subsystem of that name"
	}
	return s
}

// A ProtocolError says that a controller did what none may do. The connection was ended because of it.
type ProtocolError struct{ Reason string }

// Error says what it did.
func (e *ProtocolError) Error() string { return "nvme: the controller " + e.Reason }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// A TimeoutError says that a command was not answered in time.
type TimeoutError struct {
	Command string
	After   time.Duration
}

// Error names the command.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("nvme: %s was not answered within %v", e.Command, e.After)
}

// Is reports it as os.ErrDeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// A RejectError says that a target does not take the connection of a queue.
type RejectError struct {
	Reason Reject
	// Err is iwarp's error. The connection is closed.
	Err error
}

// Error has the target's reason.
func (e *RejectError) Error() string { return fmt.Sprintf("nvme: %v (%v)", e.Reason, e.Err) }

// Unwrap returns iwarp's error.
func (e *RejectError) Unwrap() error { return e.Err }

// A LostError says that a Controller has given up: what ended its connections, and why there are no new
// ones.
type LostError struct {
	// Cause ended the connections.
	Cause error
	// Reconnect is what the last attempt to connect again met; nil: there was none.
	Reconnect error
}

// Error has both.
func (e *LostError) Error() string {
	if e.Reconnect == nil {
		return fmt.Sprintf("nvme: the controller was lost: %v", e.Cause)
	}
	return fmt.Sprintf("nvme: the controller was lost (%v), and there is no new one: %v", e.Cause, e.Reconnect)
}

// Unwrap returns both.
func (e *LostError) Unwrap() []error {
	if e.Reconnect == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Reconnect}
}
