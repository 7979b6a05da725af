package ddp

// Wraps reports whether the sum of a Tagged Offset and a length in bytes exceeds 64 bits. If so, the
// buffer has an end that no Tagged Offset can name.
func Wraps(to, length uint64) bool { return to+length < to }

// CheckBounds says whether n bytes at Tagged Offset to lie within the length bytes
// of a Tagged Buffer from its first Tagged Offset, base, on. It returns 0,
// [CodeTOWrap] or [CodeBaseOrBounds]. It looks for a wrap first, as every wrap is out
// of bounds too. Nothing (n = 0) lies in every buffer.
//
// The caller has to find out first whether there is such a buffer, whether it belongs to the
// stream, and whether it may be written ([CodeInvalidSTag], [CodeSTagNotAssociated]).
func CheckBounds(to, n, base, length uint64) Code {
	// RFC 5041, section 5.2: "The STag and TO fields MUST NOT be checked for a
	// zero-length Tagged DDP Message." [D23]
	if n == 0 {
		return 0
	}
	// RFC 5041, section 7.1: "A 64-bit unsigned sum of the DDP Segment payload
	// length and the TO does not wrap." [D40]
	if Wraps(to, n) {
		return CodeTOWrap
	}
	// RFC 5041, section 7.1: "The TO falls in the range of legal offsets
	// registered for the STag." "The sum of the DDP Segment payload length and
	// the TO falls in the range of legal offsets registered for the STag." [D40]
	if to < base || to-base > length || n > length-(to-base) {
		return CodeBaseOrBounds
	}
	return 0
}
