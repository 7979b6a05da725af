package ddp

import (
	"encoding/binary"
	"fmt"
)

// Header lengths in octets. RFC 5041, Sections 4.2 and 4.3.
const (
	TaggedHeaderLen   = 14
	UntaggedHeaderLen = 18
)

// The DDP Control Field, the first octet of either header. RFC 5041, Section 4.1.
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

// A TaggedHeader is a view of the header of a segment for a Tagged Buffer,
// T = 1. RFC 5041, Section 4.2. The octets are those of the segment; nothing is copied.
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
// The accessors of a header which did not come from [ParseTagged] panic if it is too short.
type TaggedHeader []byte

// ParseTagged returns the first [TaggedHeaderLen] octets of b as a tagged
// header. It checks the length and nothing else, not even the T bit. The error
// is an [*Error] with [CodeLocalCatastrophic].
func ParseTagged(b []byte) (TaggedHeader, error) {
	if len(b) < TaggedHeaderLen {
		return nil, tooShort("tagged", len(b), TaggedHeaderLen)
	}
	return TaggedHeader(b[:TaggedHeaderLen:TaggedHeaderLen]), nil
}

// Tagged reports the T bit.
func (h TaggedHeader) Tagged() bool { return h[offControl]&controlT != 0 }

// Last reports the L bit: whether the segment is the last one of its message.
func (h TaggedHeader) Last() bool { return h[offControl]&controlL != 0 }

// Rsvd returns the four reserved bits of the DDP Control Field, 0 to 15.
func (h TaggedHeader) Rsvd() uint8 { return h[offControl] & controlRsvd >> controlRsvdShift }

// Version returns DV, 0 to 3.
func (h TaggedHeader) Version() uint8 { return h[offControl] & controlVersion }

// RsvdULP returns the octet which is the ULP's, RDMAP's control field.
func (h TaggedHeader) RsvdULP() uint8 { return h[offRsvdULP] }

// STag returns the Steering Tag of the Data Sink's Tagged Buffer.
func (h TaggedHeader) STag() uint32 { return binary.BigEndian.Uint32(h[offSTag:]) }

// TO returns the Tagged Offset of the payload's first octet.
func (h TaggedHeader) TO() uint64 { return binary.BigEndian.Uint64(h[offTO:]) }

// An UntaggedHeader is a view of the header of a segment for an Untagged
// Buffer, T = 0. RFC 5041, Section 4.3. The octets are those of the segment; nothing is copied.
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
//
// The accessors of a header which did not come from [ParseUntagged] panic if it is too short.
type UntaggedHeader []byte

// ParseUntagged returns the first [UntaggedHeaderLen] octets of b as an
// untagged header. It checks the length and nothing else, not even the T bit.
// The error is an [*Error] with [CodeLocalCatastrophic].
func ParseUntagged(b []byte) (UntaggedHeader, error) {
	if len(b) < UntaggedHeaderLen {
		return nil, tooShort("untagged", len(b), UntaggedHeaderLen)
	}
	return UntaggedHeader(b[:UntaggedHeaderLen:UntaggedHeaderLen]), nil
}

// Tagged reports the T bit.
func (h UntaggedHeader) Tagged() bool { return h[offControl]&controlT != 0 }

// Last reports the L bit: whether the segment is the last one of its message.
func (h UntaggedHeader) Last() bool { return h[offControl]&controlL != 0 }

// Rsvd returns the four reserved bits of the DDP Control Field, 0 to 15.
func (h UntaggedHeader) Rsvd() uint8 { return h[offControl] & controlRsvd >> controlRsvdShift }

// Version returns DV, 0 to 3.
func (h UntaggedHeader) Version() uint8 { return h[offControl] & controlVersion }

// RsvdULP returns RsvdULP[0:7], the first of five octets which are the ULP's, RDMAP's control field.
func (h UntaggedHeader) RsvdULP() uint8 { return h[offRsvdULP] }

// ULP returns RsvdULP[8:39], the other four octets which are the ULP's.
func (h UntaggedHeader) ULP() uint32 { return binary.BigEndian.Uint32(h[offULP:]) }

// QN returns the Queue Number.
func (h UntaggedHeader) QN() uint32 { return binary.BigEndian.Uint32(h[offQN:]) }

// MSN returns the Message Sequence Number.
func (h UntaggedHeader) MSN() uint32 { return binary.BigEndian.Uint32(h[offMSN:]) }

// MO returns the Message Offset of the payload's first octet.
func (h UntaggedHeader) MO() uint32 { return binary.BigEndian.Uint32(h[offMO:]) }

func tooShort(model string, got, want int) *Error {
	return &Error{
		Code:   CodeLocalCatastrophic,
		Field:  "DDP Segment",
		Reason: fmt.Sprintf("too short for the %s header: expected at least %d octets, got %d", model, want, got),
	}
}
