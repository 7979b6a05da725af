package ddp

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Header lengths in bytes. RFC 5041, sections 4.2 and 4.3.
const (
	TaggedHeaderLen   = 14
	UntaggedHeaderLen = 18
)

// The DDP Control Field, the first byte of either header. RFC 5041, section 4.1.
//
//	 0 1 2 3 4 5 6 7
//	+-+-+-+-+-+-+-+-+
//	|T|L| Rsvd  | DV|
//	+-+-+-+-+-+-+-+-+
const (
	controlT       = 0x80
	controlL       = 0x40
	controlRsvd    = 0x3c
	controlVersion = 0x03

	controlRsvdShift = 2
)

// Offsets of what both headers begin with.
const (
	offControl = 0
	offRsvdULP = 1
)

// Offsets in a tagged header.
const (
	offSTag = 2
	offTO   = 6
)

// Offsets in an untagged header.
const (
	offULP = 2
	offQN  = 6
	offMSN = 10
	offMO  = 14
)

// A Header holds the fields of a DDP header of either model. The fields of the
// other model are zero after [Parse] and are not looked at by [Header.Append].
//
// Of a segment for a Tagged Buffer, T = 1 (RFC 5041, section 4.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |1|L| Rsvd  | DV|    RsvdULP    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             STag                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                              TO                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Of a segment for an Untagged Buffer, T = 0 (RFC 5041, section 4.3):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |0|L| Rsvd  | DV| RsvdULP[0:7]  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         RsvdULP[8:39]                         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              QN                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              MSN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              MO                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Header struct {
	Tagged  bool  // T
	Last    bool  // L
	Rsvd    uint8 // four reserved bits of the DDP Control Field, 0 when sent by the rules
	Version uint8 // DV, two bits
	RsvdULP uint8 // second byte: RsvdULP, or RsvdULP[0:7]; RDMAP's control field

	// Tagged model, RFC 5041, section 4.2.
	STag uint32
	TO   uint64

	// Untagged model, RFC 5041, section 4.3.
	ULP uint32 // RsvdULP[8:39]; RDMAP's Invalidate STag
	QN  uint32
	MSN uint32
	MO  uint32
}

// read reads the fields of a header that is whole. The others are zero already.
func (h *Header) read(b []byte) {
	// The two bytes with which both headers begin.
	c := b[offControl]
	h.Tagged, h.Last = c&controlT != 0, c&controlL != 0
	h.Rsvd, h.Version = c&controlRsvd>>controlRsvdShift, c&controlVersion
	h.RsvdULP = b[offRsvdULP]
	if h.Tagged {
		h.STag, h.TO = binary.BigEndian.Uint32(b[offSTag:]), binary.BigEndian.Uint64(b[offTO:])
		return
	}
	h.ULP, h.QN = binary.BigEndian.Uint32(b[offULP:]), binary.BigEndian.Uint32(b[offQN:])
	h.MSN, h.MO = binary.BigEndian.Uint32(b[offMSN:]), binary.BigEndian.Uint32(b[offMO:])
}

// HeaderLen returns the length of the header that begins with b, by its T bit: 14 or
// 18 bytes. Where b is empty it is the longer one, 18.
func HeaderLen(b []byte) int {
	if len(b) > 0 && b[offControl]&controlT != 0 {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// Len returns the length of the header which Append writes, 14 or 18.
func (h *Header) Len() int {
	if h.Tagged {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// Append appends the header's bytes to dst. Any field values are written,
// legal or not; of Version the low two bits are taken, of Rsvd the low four.
func (h *Header) Append(dst []byte) []byte { return h.appendAt(dst, h.TO, h.MO) }

// appendAt is Append with another TO and MO. It writes words of eight bytes, and then of four and two, as a reader
// of the header takes them from there (mpa.Writer.Frame): a processor that loads at once what it has just stored
// piece by piece waits for all its stores.
func (h *Header) appendAt(dst []byte, to uint64, mo uint32) []byte {
	front := uint64(h.control())<<56 | uint64(h.RsvdULP)<<48
	if h.Tagged {
		dst = slices.Grow(dst, TaggedHeaderLen)
		b := (*[TaggedHeaderLen]byte)(dst[len(dst) : len(dst)+TaggedHeaderLen])
		binary.BigEndian.PutUint64(b[:], front|uint64(h.STag)<<16|to>>48)
		binary.BigEndian.PutUint32(b[8:], uint32(to>>16))
		binary.BigEndian.PutUint16(b[12:], uint16(to))
		return dst[:len(dst)+TaggedHeaderLen]
	}
	dst = slices.Grow(dst, UntaggedHeaderLen)
	b := (*[UntaggedHeaderLen]byte)(dst[len(dst) : len(dst)+UntaggedHeaderLen])
	binary.BigEndian.PutUint64(b[:], front|uint64(h.ULP)<<16|uint64(h.QN)>>16)
	binary.BigEndian.PutUint64(b[8:], uint64(h.QN)<<48|uint64(h.MSN)<<16|uint64(mo)>>16)
	binary.BigEndian.PutUint16(b[16:], uint16(mo))
	return dst[:len(dst)+UntaggedHeaderLen]
}

func (h *Header) control() byte {
	c := h.Rsvd<<controlRsvdShift&controlRsvd | h.Version&controlVersion
	if h.Tagged {
		c |= controlT
	}
	if h.Last {
		c |= controlL
	}
	return c
}

// String describes the header in the RFC's field names.
func (h Header) String() string {
	l := 0
	if h.Last {
		l = 1
	}
	if h.Tagged {
		return fmt.Sprintf("DDP tagged L=%d Rsvd=%d DV=%d RsvdULP=%#02x STag=%#08x TO=%#x",
			l, h.Rsvd, h.Version, h.RsvdULP, h.STag, h.TO)
	}
	return fmt.Sprintf("DDP untagged L=%d Rsvd=%d DV=%d RsvdULP=%#02x:%08x QN=%d MSN=%d MO=%d",
		l, h.Rsvd, h.Version, h.RsvdULP, h.ULP, h.QN, h.MSN, h.MO)
}

func tooShort(model string, got, want int) *Error {
	return &Error{
		Code:   CodeLocalCatastrophic,
		Field:  "DDP Segment",
		Reason: fmt.Sprintf("too short for the %s header: expected at least %d bytes, got %d", model, want, got),
	}
}
