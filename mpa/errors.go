package mpa

import (
	"fmt"
	"strings"
)

// Code is an MPA error code: RFC 5044, section 8, extended by RFC 6581, Section
// 8. In an RDMAP Terminate it is the Error Code of Layer 2 (LLP), Error Type 0
// (MPA). It is not an error by itself; see [Error].
type Code uint8

// The MPA error codes.
const (
	CodeConnectionLost    Code = 1 // TCP connection closed, terminated, or lost
	CodeCRC               Code = 2 // received MPA CRC does not match the calculated value
	CodeMarker            Code = 3 // MPA Marker and ULPDU Length do not agree on the start of an FPDU
	CodeStartupFrame      Code = 4 // invalid MPA Request or Reply Frame
	CodeLocalCatastrophic Code = 5 // RFC 6581: local catastrophic
	CodeInsufficientIRD   Code = 6 // RFC 6581: insufficient IRD resources
	CodeNoMatchingRTR     Code = 7 // RFC 6581: no matching RTR option
)

// codeNames has the names that RFC 5040, section 4.8, and RFC 6581, section 8, give the codes in a Terminate.
var codeNames = [...]string{
	CodeConnectionLost:    "TCP connection closed, terminated or lost",
	CodeCRC:               "CRC mismatch",
	CodeMarker:            "marker and ULPDU Length field mismatch",
	CodeStartupFrame:      "invalid MPA Request Frame or MPA Reply Frame",
	CodeLocalCatastrophic: "local catastrophic",
	CodeInsufficientIRD:   "insufficient IRD resources",
	CodeNoMatchingRTR:     "no matching RTR option",
}

// Known reports whether RFC 5044 or RFC 6581 gives the code a meaning.
func (c Code) Known() bool { return int(c) < len(codeNames) && codeNames[c] != "" }

// String gives the code's name, as in "MPA/CRC mismatch".
func (c Code) String() string {
	if !c.Known() {
		return fmt.Sprintf("MPA/unknown (%#x)", uint8(c))
	}
	return "MPA/" + codeNames[c]
}

// Error is an error that MPA detected, with its place in the bytes received.
type Error struct {
	// Code is the RFC's number for it.
	Code Code
	// Offset is where the offending field begins. In Full Operation it counts
	// bytes of the half connection since Full Operation began, markers
	// included; in the startup phase bytes of the startup frame.
	Offset uint64
	// Field is the RFC's name of the offending field, such as "CRC".
	Field string
	// Reason says what is wrong with it.
	Reason string
	// Hint says what the user can do about it; it may be empty.
	Hint string
	// Err is the cause outside MPA, such as a socket's error; it may be nil.
	Err error
}

// Error returns, for instance,
// "mpa: bad CRC at stream offset 1432: got 0x00000000 want 0x52239983; ...".
func (e *Error) Error() string { return "mpa: " + e.text() }

// text returns the error without the name of the layer.
func (e *Error) text() string {
	var b strings.Builder
	e.describe(&b)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

func (e *Error) describe(b *strings.Builder) {
	switch {
	case e.Field == "":
		b.WriteString(e.Reason)
	case e.Code == CodeStartupFrame:
		fmt.Fprintf(b, "bad %s at byte %d of the startup frame: %s", e.Field, e.Offset, e.Reason)
	default:
		fmt.Fprintf(b, "bad %s at stream offset %d: %s", e.Field, e.Offset, e.Reason)
	}
}

// Unwrap returns the cause outside MPA, if there is one.
func (e *Error) Unwrap() error { return e.Err }
