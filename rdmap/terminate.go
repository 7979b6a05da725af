package rdmap

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/goiwarp/iwarp/ddp"
)

// Lengths of a Terminate Header in bytes: of the control field alone, and with
// segment length, untagged DDP header and Read Request header after it.
const (
	TerminateMinLen = 4
	TerminateMaxLen = terminateParts + 2 + ddp.UntaggedHeaderLen + ReadRequestLen
)

// The header control bits (HdrCt) in byte 2 of a Terminate Header.
const (
	hdrCtM = 0x80
	hdrCtD = 0x40
	hdrCtR = 0x20
)

// Offsets in a Terminate Header.
const (
	offLayerEType  = 0
	offErrorCode   = 1
	offHdrCt       = 2
	terminateParts = 4 // the first part that HdrCt announces
)

// Layout tells how a Terminate's control field was laid out.
type Layout uint8

const (
	// LayoutRFC is that of RFC 5040, Figure 8.
	LayoutRFC Layout = iota
	// LayoutSIW is that of Linux's siw: Layer and EType are swapped, and M, D
	// and R are the three lowest bits of their byte instead of the highest.
	LayoutSIW
)

// String names the layout.
func (l Layout) String() string {
	if l == LayoutSIW {
		return "siw"
	}
	return "RFC 5040"
}

// A Terminate is the Terminate Header, the whole of a Terminate Message after
// its DDP header. RFC 5040, section 4.8.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Layer | EType |  Error Code   |M|D|R|        Reserved         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  DDP Segment Length (if any)  |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	//                Terminated DDP Header (if any)               //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	//                Terminated RDMA Header (if any)              //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Terminate struct { // [P13]
	Code Code

	// SegmentLength is the DDP Segment Length, header and payload. It is
	// present when HasLength is set or there is a DDPHeader, and valid when
	// HasLength, the M bit, is set. siw puts the payload's length here.
	SegmentLength uint16
	HasLength     bool

	DDPHeader   []byte // of the segment in error, 14 or 18 bytes, nil without the D bit
	RDMAPHeader []byte // of the Read Request in error, 28 bytes, nil without the R bit

	Layout Layout // as parsed; Append always writes the RFC's
}

// Append appends the Terminate Header to dst, in the RFC's layout. HdrCt
// follows from which parts there are; the parts are written as they are,
// whatever their length.
func (t *Terminate) Append(dst []byte) []byte {
	// RFC 5040, section 4.8: "Reserved: 13 bits. This field MUST be set to zero
	// on transmit". [P13]
	dst = binary.BigEndian.AppendUint16(dst, uint16(t.Code))
	dst = append(dst, t.hdrCt(), 0)
	// RFC 5040, section 4.8: the DDP Segment Length "MUST be present when the D
	// bit is set", the headers "MUST be present if the D bit is set" and "if the
	// R bit is set". [P15]
	if t.HasLength || t.DDPHeader != nil {
		dst = binary.BigEndian.AppendUint16(dst, t.SegmentLength)
	}
	dst = append(dst, t.DDPHeader...)
	return append(dst, t.RDMAPHeader...)
}

func (t *Terminate) hdrCt() (b byte) {
	if t.HasLength {
		b |= hdrCtM
	}
	if t.DDPHeader != nil {
		b |= hdrCtD
	}
	if t.RDMAPHeader != nil {
		b |= hdrCtR
	}
	return b
}

// TerminateFor returns the Terminate for an error found with a code on an
// incoming segment, or on none, when seg is nil. The headers in it are copies:
// the Terminate may be sent after the segment's memory is used again.
//
// For a Read Request which failed after part of it was answered, see [IRRQ.Terminate].
func TerminateFor(code Code, seg *ddp.Segment) Terminate {
	t := Terminate{Code: code}
	// RFC 5040, section 7.1: for errors "not directly associated with an incoming
	// Message" type and code go alone. [P50] So they do for a local catastrophic
	// error and for the LLP's, by Figure 10. [P16]
	if seg == nil || !code.includesDDPHeader() {
		return t
	}
	// RFC 5040, section 7.1: "the Error Type, Error Code, ULP PDU Length, and
	// Terminated DDP Header fields are included". [P53]
	t.DDPHeader = bytes.Clone(seg.Raw)
	t.SegmentLength, t.HasLength = segmentLength(seg)
	// RFC 5040, section 4.8: "The Terminated RDMA Header is only sent back if the
	// terminate is associated with an RDMA Read Request Message." [P54]
	if code.includesRDMAPHeader() && isReadRequest(seg) {
		t.RDMAPHeader = bytes.Clone(seg.Payload[:ReadRequestLen])
	}
	return t
}

// segmentLength returns the DDP Segment Length, and whether its field holds it.
func segmentLength(seg *ddp.Segment) (n uint16, ok bool) {
	if seg.Length() > math.MaxUint16 {
		return 0, false
	}
	return uint16(seg.Length()), true
}

// includesDDPHeader is the third column of RFC 5040, Figure 10. [P16]
func (c Code) includesDDPHeader() bool {
	switch c.Layer() {
	case LayerRDMAP:
		return !c.localCatastrophic()
	case LayerDDP:
		// Section 4.8: "The DDP Header is not present if the Terminate Error Type
		// is a Local Catastrophic Error."
		return c.EType() != ETypeLocalCatastrophic
	}
	return false
}

// includesRDMAPHeader is the fourth column of RFC 5040, Figure 10. [P16]
func (c Code) includesRDMAPHeader() bool {
	return c.Layer() == LayerRDMAP && c.EType() == ETypeRemoteProtection
}

func isReadRequest(seg *ddp.Segment) bool {
	return !seg.Tagged && OpcodeOf(&seg.Header) == OpReadRequest && len(seg.Payload) >= ReadRequestLen
}
