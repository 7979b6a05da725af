package rsockets

import (
	"errors"
	"fmt"
)

// ErrVersion is wrapped by the error of private data of another version than 1.
var ErrVersion = errors.New("version not supported")

// An Error says what a peer has done that the protocol does not have.
type Error struct {
	// Field is what was wrong: "private data", "word", "data", "credit", "table", "map".
	Field string
	// Reason says why.
	Reason string
	cause  error
}

// Error names the protocol, what was wrong, and why.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("rsockets: %s: %s: %v", e.Field, e.Reason, e.cause)
	}
	return fmt.Sprintf("rsockets: %s: %s", e.Field, e.Reason)
}

// Unwrap returns ErrVersion, or nil.
func (e *Error) Unwrap() error { return e.cause }

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}
