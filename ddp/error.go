package ddp

import "fmt"

// A Code is an error number of RFC 5041, section 7.2, in the form in which an
// RDMAP Terminate carries it: layer (4 bits, 1 for DDP), error type (4 bits)
// and error code (8 bits).
type Code uint16

// The error numbers of RFC 5041, section 7.2.
//
// "The following error numbers MUST be used when reporting errors to the ULP."
const ( // [D43]
	CodeLocalCatastrophic Code = 0x1000

	// Tagged Buffer errors.
	CodeInvalidSTag          Code = 0x1100
	CodeBaseOrBounds         Code = 0x1101
	CodeSTagNotAssociated    Code = 0x1102
	CodeTOWrap               Code = 0x1103
	CodeTaggedInvalidVersion Code = 0x1104

	// Untagged Buffer errors.
	CodeInvalidQN              Code = 0x1201
	CodeInvalidMSNNoBuffer     Code = 0x1202
	CodeInvalidMSNRange        Code = 0x1203
	CodeInvalidMO              Code = 0x1204
	CodeMessageTooLong         Code = 0x1205
	CodeUntaggedInvalidVersion Code = 0x1206
)

var codeNames = map[Code]string{
	CodeLocalCatastrophic: "Local Catastrophic",

	CodeInvalidSTag:          "Tagged Buffer/invalid STag",
	CodeBaseOrBounds:         "Tagged Buffer/base or bounds violation",
	CodeSTagNotAssociated:    "Tagged Buffer/STag not associated with DDP Stream",
	CodeTOWrap:               "Tagged Buffer/TO wrap",
	CodeTaggedInvalidVersion: "Tagged Buffer/invalid DDP version",

	CodeInvalidQN:              "Untagged Buffer/invalid QN",
	CodeInvalidMSNNoBuffer:     "Untagged Buffer/invalid MSN, no buffer available",
	CodeInvalidMSNRange:        "Untagged Buffer/invalid MSN, MSN range is not valid",
	CodeInvalidMO:              "Untagged Buffer/invalid MO",
	CodeMessageTooLong:         "Untagged Buffer/DDP Message too long for available buffer",
	CodeUntaggedInvalidVersion: "Untagged Buffer/invalid DDP version",
}

// Known reports whether the code is one of RFC 5041, section 7.2.
func (c Code) Known() bool {
	_, ok := codeNames[c]
	return ok
}

// String gives the code's name and value, as in
// "DDP/Untagged Buffer/invalid MO (0x1204)".
func (c Code) String() string {
	name, ok := codeNames[c]
	if !ok {
		name = "unknown"
	}
	return fmt.Sprintf("DDP/%s (0x%04x)", name, uint16(c))
}

// An Error says what is wrong with a DDP Segment.
type Error struct {
	Code   Code
	Field  string // the field at fault, by the RFC's name
	Reason string // what was expected and what was there
}

// Error describes the error: layer, field, reason and code.
func (e *Error) Error() string {
	return "ddp: " + e.Field + ": " + e.Reason + ": " + e.Code.String()
}

// Is reports whether target is an [*Error] with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CheckVersion checks DV against the version which the stream uses, 0 or 1. A wrong one is
// [CodeTaggedInvalidVersion] or [CodeUntaggedInvalidVersion], by the received T bit. The Rsvd
// bits beside DV are never looked at.
func CheckVersion(h *Header, version uint8) *Error {
	// RFC 5041, section 4.1: "The value of DV MUST be the same for all the DDP
	// Segments transmitted or received on a DDP Stream." [D13]
	if h.Version == version {
		return nil
	}
	code := CodeUntaggedInvalidVersion
	if h.Tagged {
		code = CodeTaggedInvalidVersion
	}
	return &Error{Code: code, Field: "DV", Reason: fmt.Sprintf("expected version %d, got %d", version, h.Version)}
}
