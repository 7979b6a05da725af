package ddp

// A Segment is one received DDP Segment. Raw and Payload are parts of the
// ULPDU which was parsed; nothing is copied.
type Segment struct {
	Header
	Raw     []byte // the header's bytes as received
	Payload []byte // the ULP Payload, may be empty
	Apart   int    // bytes of ULP Payload that are not in Payload: the LLP has them elsewhere
}

// PayloadLen returns the bytes of ULP Payload, wherever they are.
func (s *Segment) PayloadLen() int { return len(s.Payload) + s.Apart }

// Parse splits a ULPDU into header and payload. A ULPDU which does not hold the header that its
// T bit announces gives an [*Error] with [CodeLocalCatastrophic], as there is no header to
// report a better one with. Nothing else is judged here, not even the version: see
// [CheckVersion].
func Parse(ulpdu []byte) (s Segment, err error) {
	err = s.Parse(ulpdu)
	return s, err
}

// Parse is the function Parse for a Segment that the caller has, and that is zero: an error leaves it so.
func (s *Segment) Parse(ulpdu []byte) error {
	if len(ulpdu) == 0 {
		return tooShort("shortest", 0, TaggedHeaderLen)
	}
	// RFC 5041, section 4.1: "If set to one, the ULP Payload carried in this
	// DDP Segment MUST be Placed into a Tagged Buffer." [D09]
	// "If set to zero, the ULP Payload [...] MUST be Placed into an Untagged Buffer." [D10]
	n, model := UntaggedHeaderLen, "untagged"
	if ulpdu[offControl]&controlT != 0 {
		n, model = TaggedHeaderLen, "tagged"
	}
	if len(ulpdu) < n {
		return tooShort(model, len(ulpdu), n)
	}
	s.read(ulpdu)
	s.Raw, s.Payload = ulpdu[:n:n], ulpdu[n:]
	return nil
}

// Length returns the length of the DDP Segment, header and payload.
func (s *Segment) Length() int { return len(s.Raw) + s.PayloadLen() }
