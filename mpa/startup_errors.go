package mpa

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Mistakes of the caller of a startup machine.
var (
	// ErrState means that a call does not fit the machine's state, such as Accept
	// before a Request has arrived.
	ErrState = errors.New("mpa: call does not fit the state of the startup")
	// ErrOffer means that an [Offer] or [Answer] has a value out of range. The error
	// that wraps it says which.
	ErrOffer = errors.New("mpa: bad offer or answer")
)

// Failure is a kind of startup failure.
type Failure uint8

// The kinds of startup failures.
const (
	FailureTimeout            Failure = iota + 1 // the peer's frame did not arrive in time
	FailureClosed                                // the peer closed or reset the connection
	FailureKey                                   // what arrived does not begin with the key
	FailureInitiatorInitiator                    // both ends are Initiator
	FailureResponderResponder                    // both ends are Responder, by what the peer sent
	FailureRevision                              // a revision that is not served
	FailurePrivateData                           // PD_Length out of bounds
	FailureMismatch                              // frames of the two ends that do not fit
	FailureDialect                               // a dialect that is not served here
)

// String names the failure.
func (f Failure) String() string {
	switch f {
	case FailureTimeout:
		return "timeout"
	case FailureClosed:
		return "connection closed"
	case FailureKey:
		return "wrong key"
	case FailureInitiatorInitiator:
		return "Initiator/Initiator startup"
	case FailureResponderResponder:
		return "Responder/Responder startup"
	case FailureRevision:
		return "revision not served"
	case FailurePrivateData:
		return "bad PD_Length"
	case FailureMismatch:
		return "frames do not fit each other"
	case FailureDialect:
		return "dialect not served"
	}
	return fmt.Sprintf("failure %d", uint8(f))
}

// Hint says what to do about a failure that has the same cause whatever was sent: two
// ends of the same role. For the others it is empty; see [Error].
func (f Failure) Hint() string {
	switch f {
	case FailureInitiatorInitiator:
		return twoInitiatorsHint
	case FailureResponderResponder:
		return twoRespondersHint
	}
	return ""
}

// StartupError is a startup that failed. The TCP connection is to be closed: RFC
// 5044, section 8, for code 4: "the TCP connection MUST be immediately closed."
// A rejection is not a failure; see [RejectError].
type StartupError struct {
	// Role is the one of this end.
	Role Role
	// Failure is what happened, for programs to test.
	Failure Failure
	// Fallback advises to try again on a new connection with a revision 1
	// Request, as the peer seems not to know RFC 6581. The consumer has to agree:
	// there are no IRD and ORD, and no RTR indication, in revision 1.
	Fallback bool
	// Err has the code, the place, and the hint.
	Err *Error
}

// Error returns, for instance, "mpa: startup as Responder: bad Key at byte 0 of
// the startup frame: got a TLS ClientHello ...".
func (e *StartupError) Error() string {
	return "mpa: startup as " + e.Role.String() + ": " + e.Err.text()
}

// Unwrap returns the [*Error].
func (e *StartupError) Unwrap() error { return e.Err }

// Timeout reports whether the failure is a timeout, as net.Error has it.
func (e *StartupError) Timeout() bool { return e.Failure == FailureTimeout }

// Temporary is there for net.Error. It reports false.
func (e *StartupError) Temporary() bool { return false }

// RejectError tells that the responder's consumer rejected the connection: by a Reply
// with R=1, or by what stands for that in other dialects. MPA has ended. TCP stays open
// unless Closed is set. RFC 5044, section 7.1.2: "The ULP may close TCP or use the
// connection for other purposes."
type RejectError struct {
	Dialect  Dialect
	Revision uint8 // of the Reply
	// PrivateData comes from the responder's consumer.
	PrivateData []byte
	// Enhanced says that the Reply has IRD and ORD. The responder may give in
	// PeerORD the depth that it needs the initiator's IRD to have.
	Enhanced         bool
	PeerIRD, PeerORD Depth
	// Fallback advises to try again with a revision 1 Request: an enhanced
	// Request was rejected by an unenhanced Reply.
	Fallback bool
	// Closed says that TCP does not stay open. With DialectStartKey the responder has closed it after its
	// private data message. No frame has R there, so that this is how it rejects a connection; but a responder
	// that no longer waits for our Start Key does the same. Otherwise the Reply is of a revision
	// that is not served: the caller is to close TCP (RFC 5044, section 7.1.1).
	Closed bool
	// Hint says what about our Request may have been the reason; it may be empty.
	Hint string
}

// Error names the revision and the private data that came with the rejection.
func (e *RejectError) Error() string {
	if e.Closed && e.Dialect == DialectStartKey {
		return "mpa: the responder closed the connection after its private data message, to reject it, or because our Start Key came too late for it: " + shownData(e.PrivateData)
	}
	s := fmt.Sprintf("mpa: the responder rejected the connection (R=1, revision %d, %s",
		e.Revision, shownData(e.PrivateData))
	if e.Enhanced {
		s += fmt.Sprintf(", IRD %v, ORD %v", e.PeerIRD, e.PeerORD)
	}
	s += ")"
	if e.Closed {
		s += "; the connection is closed, as that revision is not served"
	}
	if e.Fallback {
		s += "; retry with revision 1"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// shownBytes is how much of private data an error text shows, unless they are a text themselves, such as a
// responder's reason.
const shownBytes = 64

// shownPart is what of private data an error text shows.
func shownPart(b []byte) []byte {
	control := func(r rune) bool { return r < ' ' || r > '~' }
	if len(b) > shownBytes && bytes.ContainsFunc(b, control) {
		return b[:shownBytes]
	}
	return b
}

// shownData says how much private data there is, and what, as far as it fits.
func shownData(b []byte) string {
	s := wording.Bytes(len(b)) + " of private data"
	if len(b) == 0 {
		return s
	}
	part := shownPart(b)
	s += fmt.Sprintf(" %q", part)
	if len(part) < len(b) {
		s += " ..."
	}
	return s
}
