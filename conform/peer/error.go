package peer

import (
	"bytes"
	"fmt"
)

// An Error says that the other end did not do what a script expects.
type Error struct {
	Expected string // what it had to do
	Got      string // what it did
	Offset   uint64 // of Bytes in the stream received; the first byte of the connection has 0
	Bytes    []byte // that came instead, or the part of it that has come
	Err      error  // of the connection, or of MPA; nil if there is none
}

// shown is how many bytes an error shows.
const shown = 64

// Error says what was expected, what came instead and where, with the first 64 bytes in hex.
func (e *Error) Error() string {
	s := fmt.Sprintf("peer: at offset %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
	if len(e.Bytes) > 0 {
		s += fmt.Sprintf(": % x", e.Bytes[:min(len(e.Bytes), shown)])
	}
	if more := len(e.Bytes) - shown; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// fail keeps an error about bytes that were not taken.
func (c *Conn) fail(expected, got string, b []byte, err error) {
	if c.err == nil {
		c.step(Step{Text: got, Received: b})
		c.err = &Error{expected, got, c.link.Taken(), bytes.Clone(b), err}
	}
}

// failTaken keeps an error about the bytes that were taken last.
func (c *Conn) failTaken(expected, got string, b []byte) {
	if c.err == nil {
		c.err = &Error{expected, got, c.link.Taken() - uint64(len(b)), bytes.Clone(b), nil}
	}
}
