package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Offsets in a Read Request header.
const (
	offSinkSTag = 0
	offSinkTO   = 4
	offReadSize = 12
	offSrcSTag  = 16
	offSrcTO    = 20
)

// A ReadRequest is the header of an RDMA Read Request. RFC 5040, section 4.4.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Data Sink STag (SinkSTag)                     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+             Data Sink Tagged Offset (SinkTO)                  +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|             RDMA Read Message Size (RDMARDSZ)                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                Data Source STag (SrcSTag)                     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+            Data Source Tagged Offset (SrcTO)                  +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ReadRequest struct { // [P10]
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32 // bytes to read, 0 included
	SrcSTag  uint32
	SrcTO    uint64
}

// ParseReadRequest reads the header at the beginning of b, the payload of a
// Read Request's segment. It checks the length only: at least [ReadRequestLen]
// bytes. The error is an [*Error] with [CodeCatastrophicStream].
func ParseReadRequest(b []byte) (ReadRequest, error) {
	r, err := parseReadRequest(b)
	if err != nil {
		return r, err
	}
	return r, nil
}

func parseReadRequest(b []byte) (ReadRequest, *Error) {
	if len(b) < ReadRequestLen {
		return ReadRequest{}, &Error{
			Code: CodeCatastrophicStream, Op: OpReadRequest, Field: "RDMA Read Request Header",
			Reason: fmt.Sprintf("expected %d bytes, got %d", ReadRequestLen, len(b)),
		}
	}
	return ReadRequest{
		SinkSTag: binary.BigEndian.Uint32(b[offSinkSTag:]),
		SinkTO:   binary.BigEndian.Uint64(b[offSinkTO:]),
		Size:     binary.BigEndian.Uint32(b[offReadSize:]),
		SrcSTag:  binary.BigEndian.Uint32(b[offSrcSTag:]),
		SrcTO:    binary.BigEndian.Uint64(b[offSrcTO:]),
	}, nil
}

// Append appends the header's [ReadRequestLen] bytes to dst.
func (r *ReadRequest) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.SinkSTag)
	dst = binary.BigEndian.AppendUint64(dst, r.SinkTO)
	dst = binary.BigEndian.AppendUint32(dst, r.Size)
	dst = binary.BigEndian.AppendUint32(dst, r.SrcSTag)
	return binary.BigEndian.AppendUint64(dst, r.SrcTO)
}

// Advance notes that n bytes, at most Size, have been sent in response. What
// is left is what a Terminate has to tell of. RFC 5040, section 4.8: "the RDMA
// Read Request Header is updated to reflect the current location of the RDMA
// Read operation".
func (r *ReadRequest) Advance(n uint32) {
	r.SinkTO += uint64(n)
	r.SrcTO += uint64(n)
	r.Size -= n
}

// String describes the request.
func (r ReadRequest) String() string {
	return fmt.Sprintf("%s from STag %#08x TO %#x to STag %#08x TO %#x",
		wording.Bytes(r.Size), r.SrcSTag, r.SrcTO, r.SinkSTag, r.SinkTO)
}

var readRequestFields = []layout{
	{name: "SinkSTag", key: "sink_stag", len: 4, verb: "%#08x"},
	{name: "SinkTO", key: "sink_to", len: 8, verb: "%#x"},
	{name: "RDMARDSZ", key: "size", len: 4, verb: "%d"},
	{name: "SrcSTag", key: "source_stag", len: 4, verb: "%#08x"},
	{name: "SrcTO", key: "source_to", len: 8, verb: "%#x"},
}

func readRequestText(payload []byte) string {
	r, _ := parseReadRequest(payload)
	return fmt.Sprintf("size %d source %#08x %#x sink %#08x %#x", r.Size, r.SrcSTag, r.SrcTO, r.SinkSTag, r.SinkTO)
}
