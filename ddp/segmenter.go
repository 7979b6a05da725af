package ddp

// SegmentPayload returns how many bytes of payload fit in one segment when
// the LLP takes mulpdu bytes; 0 when there is room for none.
//
// RFC 5041, section 5.2: "1482 = 1500 (MULPDU) - 18 (for the DDP Header)",
// "1486 = 1500 (MULPDU) - 14 (for the DDP Header)".
func SegmentPayload(mulpdu int, tagged bool) int {
	if tagged {
		return max(0, mulpdu-TaggedHeaderLen)
	}
	return max(0, mulpdu-UntaggedHeaderLen)
}

// A Segmenter cuts one message into segments, in the order in which they are
// sent: that of increasing MO or TO. It handles lengths and
// offsets only; the payload stays with the caller.
type Segmenter struct {
	h      Header
	length uint32
	offset uint32
	done   bool
}

// Begin has the Segmenter cut a message of length bytes, from its beginning, and returns a zero Header
// for the caller to set what is the same in all its segments: the model, DV, RsvdULP and, by
// model, the STag and the message's first TO, or RsvdULP[8:39], QN and MSN. L and MO are left to
// the Segmenter. (A Header that is handed over by value is copied as it is set, which takes longer than cutting.)
//
// RFC 5041, section 5.2: "The ULP Message Length MUST be less than 2^32." The
// type of length ensures that.
func (s *Segmenter) Begin(length uint32) *Header {
	*s = Segmenter{length: length} // [D21]
	return &s.h
}

// Next sets all fields of h to those of the next segment's header, and returns that this carries the message's
// next n bytes. mulpdu is the largest ULPDU that the LLP takes now and may
// differ from call to call. ok is false when the last segment, which has the L bit,
// was handed out before, and also when bytes are left and mulpdu has no room for
// one: then nothing has changed.
func (s *Segmenter) Next(h *Header, mulpdu int) (n int, ok bool) {
	// RFC 5041, section 5.2: a segment "MUST be no larger than the MULPDU value
	// Advertised by the LLP"; "the DDP layer MUST send all the data contained
	// in the ULP message". [D20]
	left := s.Left()
	n = s.fit(mulpdu, left)
	if s.done || n == 0 && left > 0 || mulpdu < s.h.Len() {
		return 0, false
	}
	s.at(h)
	// RFC 5041, section 4.1: L "MUST be set to one on the last DDP Segment of
	// every DDP Message. It MUST NOT be set to one on any other". Section 5.2:
	// "A zero-length DDP Message [...] MUST consume exactly one DDP Segment." [D11] [D22]
	h.Last = uint32(n) == left
	s.offset += uint32(n)
	s.done = h.Last
	return n, true
}

// Peek returns how many bytes the segment would carry that Next returns, 0 also where it returns
// none, and whether that is the last one.
func (s *Segmenter) Peek(mulpdu int) (n int, last bool) {
	left := s.Left()
	n = s.fit(mulpdu, left)
	return n, uint32(n) == left && !s.done && mulpdu >= s.h.Len()
}

// AppendMiddle is Next for a segment that carries n bytes, n > 0, and is not the last: it appends the header's
// bytes to dst.
func (s *Segmenter) AppendMiddle(dst []byte, n int) []byte {
	dst = s.h.appendAt(dst, s.h.TO+uint64(s.offset), s.offset)
	s.offset += uint32(n)
	return dst
}

// Left returns how many bytes of the message no segment has carried yet.
func (s *Segmenter) Left() uint32 { return s.length - s.offset }

// fit returns how many of left bytes go into the next segment.
func (s *Segmenter) fit(mulpdu int, left uint32) int {
	room := SegmentPayload(mulpdu, s.h.Tagged)
	if uint64(room) > uint64(left) {
		return int(left)
	}
	return room
}

// at sets the header for the payload at the offset of the message, field by field: a processor that copies in wide
// words what was just stored in narrow ones waits for all its stores.
func (s *Segmenter) at(h *Header) {
	h.Tagged, h.Rsvd, h.Version, h.RsvdULP = s.h.Tagged, s.h.Rsvd, s.h.Version, s.h.RsvdULP
	h.STag, h.ULP, h.QN, h.MSN = s.h.STag, s.h.ULP, s.h.QN, s.h.MSN
	h.TO, h.MO = s.h.TO, s.h.MO
	if h.Tagged {
		// RFC 5041, section 5.2: the TO is the offset in the ULP Message "plus the
		// TO assigned to the first octet in the associated ULP Message". [D19]
		h.TO += uint64(s.offset)
		return
	}
	// RFC 5041, section 5.2: "the MO MUST be set to the octet offset from the
	// first octet in the associated ULP Message (which is defined to be zero)". [D18]
	h.MO = s.offset
}
