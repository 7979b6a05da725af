package rdmap

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/internal/wording"
)

// An AtomicOp is the AOpCode of an Atomic Request, 0 to 15: which operation is asked for.
type AtomicOp uint8

// The Atomic Operations of RFC 7306, Figure 5. Code 1 is reserved, and all others are
// unassigned.
const (
	AtomicFetchAdd AtomicOp = 0x0
	AtomicCmpSwap  AtomicOp = 0x2
)

const aOpCode = 0x0f // of the first word, of which the rest is reserved

// Known reports whether RFC 7306 has the operation. Section 5.2.1: "All Atomic Operation
// Codes from Figure 5 MUST be implemented by an RNIC that supports Atomic Operations."
func (o AtomicOp) Known() bool { return o == AtomicFetchAdd || o == AtomicCmpSwap } // [A09]

// String gives the operation's name in the RFC.
func (o AtomicOp) String() string {
	switch o {
	case AtomicFetchAdd:
		return "FetchAdd"
	case AtomicCmpSwap:
		return "CmpSwap"
	}
	return fmt.Sprintf("AOpCode %d", uint8(o))
}

// Offsets in an Atomic Request header.
const (
	offAOpCode     = 0
	offRequestID   = 4
	offRemoteSTag  = 8
	offRemoteTO    = 12
	offData        = 20
	offMask        = 28
	offCompare     = 36
	offCompareMask = 44
)

// An AtomicRequest is the header of an Atomic Operation Request. RFC 7306, section 5.2.1.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Reserved (Not Used)              |AOpCode|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Request Identifier                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          Remote STag                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Remote Tagged Offset                     |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Add or Swap Data                        |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Add or Swap Mask                        |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         Compare Data                          |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         Compare Mask                          |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicRequest struct { // [A06]
	Op          AtomicOp
	ID          uint32 // the Request Identifier, which the response repeats
	STag        uint32
	TO          uint64
	Data        uint64 // Add Data or Swap Data
	Mask        uint64 // Add Mask or Swap Mask
	Compare     uint64 // Compare Data, of a CmpSwap
	CompareMask uint64 // of a CmpSwap
}

// FetchAdd returns the request for an Atomic addition, except for its ID and its target. Each bit
// set in mask is the most significant of a field, and fields are added each by itself; a mask
// of 0 makes it one addition of 64 bits.
//
// RFC 7306, section 5.2.1: for a FetchAdd "the Compare Data field is set to zero on transmit",
// and the Compare Mask "to ffffffffffffffffh".
func FetchAdd(add, mask uint64) AtomicRequest {
	return AtomicRequest{Op: AtomicFetchAdd, Data: add, Mask: mask, CompareMask: math.MaxUint64}
}

// CmpSwap returns the request for an Atomic compare and swap, except for its ID and its target.
// The bits in compareMask are compared, and if they agree those in swapMask are replaced.
func CmpSwap(compare, compareMask, swap, swapMask uint64) AtomicRequest {
	return AtomicRequest{Op: AtomicCmpSwap, Data: swap, Mask: swapMask, Compare: compare, CompareMask: compareMask}
}

// The names of two fields depend on the operation.
var atomicRequestFields = []layout{
	{name: "AOpCode", key: "operation", len: 4, value: func(v uint64) string { return AtomicOp(v & aOpCode).String() }},
	{name: "Request Identifier", key: requestID, len: 4, verb: "%d"},
	{name: "Remote STag", key: "stag", len: 4, verb: "%#08x"},
	{name: "Remote TO", key: "to", len: 8, verb: "%#x"},
	{name: "Add or Swap Data", key: "data", len: 8, verb: "%#x", rename: addOrSwap(" Data")},
	{name: "Add or Swap Mask", key: "mask", len: 8, verb: "%#x", rename: addOrSwap(" Mask")},
	{name: "Compare Data", key: "compare", len: 8, verb: "%#x"},
	{name: "Compare Mask", key: "compare_mask", len: 8, verb: "%#x"},
}

func addOrSwap(what string) func(header []byte) string {
	return func(header []byte) string {
		r, _ := parseAtomicRequest(header)
		return wording.If(r.Op == AtomicFetchAdd, "Add", "Swap") + what
	}
}

func atomicRequestText(payload []byte) string {
	r, _ := parseAtomicRequest(payload)
	return r.String()
}

// ParseAtomicRequest reads the header at the beginning of b, the payload of an Atomic
// Request's segment. It checks the length only: at least [AtomicRequestLen] bytes. The
// reserved bits are "ignored on receive" (RFC 7306, section 5.2.1). The error is an [*Error]
// with [CodeCatastrophicStream].
func ParseAtomicRequest(b []byte) (AtomicRequest, error) {
	r, err := parseAtomicRequest(b)
	if err != nil {
		return r, err
	}
	return r, nil
}

func parseAtomicRequest(b []byte) (AtomicRequest, *Error) {
	if len(b) < AtomicRequestLen {
		return AtomicRequest{}, &Error{
			Code: CodeCatastrophicStream, Op: OpAtomicRequest, Field: "Atomic Operation Request Header",
			Reason: fmt.Sprintf("expected %d bytes, got %d", AtomicRequestLen, len(b)),
		}
	}
	return AtomicRequest{
		Op:          AtomicOp(binary.BigEndian.Uint32(b[offAOpCode:]) & aOpCode),
		ID:          binary.BigEndian.Uint32(b[offRequestID:]),
		STag:        binary.BigEndian.Uint32(b[offRemoteSTag:]),
		TO:          binary.BigEndian.Uint64(b[offRemoteTO:]),
		Data:        binary.BigEndian.Uint64(b[offData:]),
		Mask:        binary.BigEndian.Uint64(b[offMask:]),
		Compare:     binary.BigEndian.Uint64(b[offCompare:]),
		CompareMask: binary.BigEndian.Uint64(b[offCompareMask:]),
	}, nil
}

// Append appends the header's [AtomicRequestLen] bytes to dst. Of Op the low four bits are taken.
func (r *AtomicRequest) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Op&aOpCode))
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	dst = binary.BigEndian.AppendUint32(dst, r.STag)
	dst = binary.BigEndian.AppendUint64(dst, r.TO)
	dst = binary.BigEndian.AppendUint64(dst, r.Data)
	dst = binary.BigEndian.AppendUint64(dst, r.Mask)
	dst = binary.BigEndian.AppendUint64(dst, r.Compare)
	return binary.BigEndian.AppendUint64(dst, r.CompareMask)
}

// Apply returns what the operation makes of a value in the Responder's memory. An operation
// that is not known changes nothing.
func (r *AtomicRequest) Apply(old uint64) uint64 {
	switch r.Op {
	case AtomicFetchAdd:
		return addFields(old, r.Data, r.Mask)
	case AtomicCmpSwap:
		// RFC 7306, section 5.1.2: the pseudocode. [A11]
		if (r.Compare^old)&r.CompareMask == 0 {
			return old&^r.Mask | r.Data&r.Mask
		}
	}
	return old
}

// addFields adds a and b field by field. RFC 7306, section 5.1.1: "for each field, a bit is
// set at the most significant bit position for each field, causing any carry out of that bit
// position to be discarded when the addition is performed." Without these bits no field
// carries into the next; they are added without carry. [A10]
func addFields(a, b, mask uint64) uint64 {
	return (a&^mask + b&^mask) ^ (a^b)&mask
}

// String describes the request.
func (r AtomicRequest) String() string {
	at := fmt.Sprintf("at STag %#08x TO %#x, request %d", r.STag, r.TO, r.ID)
	switch r.Op {
	case AtomicFetchAdd:
		return fmt.Sprintf("FetchAdd %#x mask %#x %s", r.Data, r.Mask, at)
	case AtomicCmpSwap:
		return fmt.Sprintf("CmpSwap %#x mask %#x to %#x mask %#x %s", r.Compare, r.CompareMask, r.Data, r.Mask, at)
	}
	return r.Op.String() + " " + at
}

// Offsets in an Atomic Response header.
const (
	offOriginalID    = 0
	offOriginalValue = 4
)

// An AtomicResponse is the header of an Atomic Operation Response. RFC 7306, section 5.2.2.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                    Original Request Identifier                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                    Original Remote Data Value                 |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Section 4 of the RFC has it 32 bytes long, which is the whole FPDU with its ULPDU_Length
// and DDP header; the figure here and that of its Appendix A.2 have 12.
type AtomicResponse struct { // [A23]
	ID    uint32 // of the request
	Value uint64 // what was in memory before the operation
}

var atomicResponseFields = []layout{
	{name: "Original Request ID", key: requestID, len: 4, verb: "%d"},
	{name: "Original Value", key: "value", len: 8, verb: "%#x"},
}

func atomicResponseText(payload []byte) string {
	r, _ := ParseAtomicResponse(payload)
	return "original " + r.String()
}

// ParseAtomicResponse reads the header at the beginning of b, the payload of an Atomic
// Response's segment. It checks the length only: at least [AtomicResponseLen] bytes. The
// error is an [*Error] with [CodeCatastrophicStream].
func ParseAtomicResponse(b []byte) (AtomicResponse, error) {
	if len(b) < AtomicResponseLen {
		return AtomicResponse{}, &Error{
			Code: CodeCatastrophicStream, Op: OpAtomicResponse, Field: "Atomic Operation Response Header",
			Reason: fmt.Sprintf("expected %d bytes, got %d", AtomicResponseLen, len(b)),
		}
	}
	return AtomicResponse{ID: binary.BigEndian.Uint32(b[offOriginalID:]),
		Value: binary.BigEndian.Uint64(b[offOriginalValue:])}, nil
}

// Append appends the header's [AtomicResponseLen] bytes to dst.
func (r *AtomicResponse) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	return binary.BigEndian.AppendUint64(dst, r.Value)
}

// String describes the response.
func (r AtomicResponse) String() string { return fmt.Sprintf("%#x, of request %d", r.Value, r.ID) }
