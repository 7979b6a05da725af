package ddp

import "fmt"

// CheckTagged says whether a tagged segment lies within the buffer which its
// STag names: length octets from the Tagged Offset base on. That there is such
// a buffer, that it belongs to the stream and may be written is the caller's to
// find out before ([CodeInvalidSTag], [CodeSTagNotAssociated]), and not for a
// segment without payload, which always passes here.
//
// The error is [CodeTOWrap] or [CodeBaseOrBounds]. A wrap is looked for first, as
// every wrap is out of bounds too.
func CheckTagged(s *Segment, base uint64, length uint64) *Error {
	// RFC 5041, Section 5.2: "The STag and TO fields MUST NOT be checked for a
	// zero-length Tagged DDP Message." [D23]
	n := uint64(len(s.Payload))
	if n == 0 {
		return nil
	}
	// RFC 5041, Section 7.1: "A 64-bit unsigned sum of the DDP Segment payload
	// length and the TO does not wrap." [D40]
	if s.TO+n < n {
		return &Error{CodeTOWrap, "TO", fmt.Sprintf("%d octets at TO %#x wrap", n, s.TO)}
	}
	// RFC 5041, Section 7.1: "The TO falls in the range of legal offsets
	// registered for the STag." "The sum of the DDP Segment payload length and
	// the TO falls in the range of legal offsets registered for the STag." [D40]
	if s.TO < base || s.TO-base > length || n > length-(s.TO-base) {
		return &Error{CodeBaseOrBounds, "TO", fmt.Sprintf("%d octets at TO %#x, STag %#08x has %d octets from %#x", n, s.TO, s.STag, length, base)}
	}
	return nil
}
