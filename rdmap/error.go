package rdmap

import "github.com/goiwarp/iwarp/ddp"

// An Error says what this side found wrong with a message of the peer's.
type Error struct {
	Code   Code
	Op     Opcode // of the message, as received; it is not told where Field is empty
	Field  string // the field at fault, by the RFC's name; empty if no message is
	Reason string // what was expected and what was there
}

// Error describes the error: layer, message, field, reason and code.
func (e *Error) Error() string {
	if e.Field == "" {
		return "rdmap: " + e.Reason + ": " + e.Code.String()
	}
	return "rdmap: " + e.Op.String() + ": " + e.Field + ": " + e.Reason + ": " + e.Code.String()
}

// Is reports whether target is an [*Error] or a [*ddp.Error] with the same code.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case *Error:
		return t.Code == e.Code
	case *ddp.Error:
		return Code(t.Code) == e.Code
	}
	return false
}

// FromDDP returns an error of the DDP layer, found on a segment of the opcode,
// as an [*Error]. No error gives nil.
//
// RFC 5040, section 3.1: "DDP propagates to RDMAP all operation or protection
// errors (used by RDMAP Terminate)".
func FromDDP(e *ddp.Error, op Opcode) *Error {
	if e == nil {
		return nil
	}
	return &Error{Code: Code(e.Code), Op: op, Field: e.Field, Reason: e.Reason}
}
