package lowerlayer

import (
	"errors"
	"fmt"
)

// Errors of SCTP associations, whatever carries them.
var (
	// ErrRestarted: the peer has begun anew from the same address and port.
	ErrRestarted = errors.New("the peer has restarted the association")
	// ErrShutdown: the peer has ended the association in order.
	ErrShutdown = errors.New("the peer has shut down the association")
	// ErrAborted: the peer has ended the association at once.
	ErrAborted = errors.New("the peer has aborted the association")
	// ErrViolated: the peer has broken a rule of SCTP, and was told so by ABORT.
	ErrViolated = errors.New("the peer has violated SCTP")
	// ErrOverrun: more came for a session than is kept, nobody received it, and others needed the association.
	ErrOverrun = errors.New("nobody has received what came for the session, and it has kept others waiting")
	// ErrTooLarge: the peer has sent more in a packet than we can take, and was told so by ABORT.
	ErrTooLarge = errors.New("a packet is too large for us")
	// ErrSilent: the peer has said nothing for too long.
	ErrSilent = errors.New("the peer has fallen silent")
	// ErrRefused: the peer has answered the handshake with ABORT.
	ErrRefused = errors.New("the peer refused the association")
	// ErrNoAnswer: nothing has come back to the handshake.
	ErrNoAnswer = errors.New("no answer to the handshake")
)

// maxReason bounds the text of an ABORT, in bytes, so that it fits into any packet.
const maxReason = 256

// Reason returns as much of a text as an ABORT of ours has.
func Reason(text string) []byte { return []byte(text[:min(len(text), maxReason)]) }

// Aborted returns an ErrAborted with what the peer has said, if that is anything.
func Aborted(text string) error {
	if text == "" {
		return ErrAborted
	}
	return fmt.Errorf("%w: %q", ErrAborted, text)
}
