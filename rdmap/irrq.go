package rdmap

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/ring"
)

// An IRRQ holds the RDMA Reads and Atomic Operations that the peer has asked for
// and that are not yet answered, the oldest first, up to the IRD. They are
// answered in that order.
//
// RFC 7306, section 5.2, has Atomic Requests in queue 1 so that they "reuse the same
// infrastructure (e.g., Outbound and Inbound RDMA Read Queue Depth (ORD/IRD) flow control)":
// one depth is for both together.
type IRRQ struct { // [A18]
	reads ring.Ring[inboundRead]
}

// inboundRead is a Read Request, or another request, and what a Terminate has to tell of
// its segment.
type inboundRead struct {
	ReadRequest
	op     Opcode
	other  [AtomicRequestLen]byte // the RDMAP header of another request, of which none is longer
	header [ddp.UntaggedHeaderLen]byte
	length uint16
	hasLen bool
}

// NewIRRQ returns an empty queue for at most ird Reads.
func NewIRRQ(ird int) IRRQ { return IRRQ{reads: ring.New[inboundRead](ird)} }

// Limit returns the IRD in force.
func (q *IRRQ) Limit() int { return q.reads.Limit() } // [P45]

// SetLimit changes the IRD. Requests beyond a lower one stay.
func (q *IRRQ) SetLimit(ird int) { q.reads.SetLimit(ird) }

// Len returns how many requests wait.
func (q *IRRQ) Len() int { return q.reads.Len() }

// Check says whether there is room for the request of a segment. One too
// many is [CodeDDPInvalidMSNRange]: the MSN lies beyond that of the last
// buffer of queue 1. Ask it before the [ddp.UntaggedQueue], which has another
// code for a queue without a buffer.
func (q *IRRQ) Check(s *ddp.Segment) *Error {
	// RFC 5040, section 6.1: "For inbound RDMA Read Requests, the RDMAP layer MUST
	// NOT exceed the maximum number of outstanding, inbound RDMA Read Requests". [P47]
	if !q.reads.Full() {
		return nil
	}
	return &Error{CodeDDPInvalidMSNRange, OpcodeOf(&s.Header), "MSN",
		fmt.Sprintf("message %d is beyond the limit of %d inbound RDMA Reads and Atomic Operations", s.MSN, q.Limit())}
}

// Push adds the request in a delivered segment that [CheckSegment] has
// passed, and keeps the segment's DDP header and length for [IRRQ.Terminate].
// It fails, and adds nothing, as [IRRQ.Check] does, or if the header is cut short.
func (q *IRRQ) Push(s *ddp.Segment) *Error {
	if err := q.Check(s); err != nil {
		return err
	}
	in, err := inbound(s)
	if err != nil {
		return err
	}
	in.length, in.hasLen = segmentLength(s)
	copy(in.header[:], s.Raw)
	*q.reads.Add() = in
	return nil
}

func inbound(s *ddp.Segment) (in inboundRead, err *Error) {
	in.op = OpcodeOf(&s.Header)
	if in.op == OpReadRequest {
		in.ReadRequest, err = parseReadRequest(s.Payload)
		return in, err
	}
	copy(in.other[:], s.Payload)
	return in, checkForm(s, in.op, in.op.info())
}

// Front returns the oldest request, nil if there is none or if it is no Read
// Request. It is the queue's own and valid until the next Push or Pop:
// [ReadRequest.Advance] on it keeps account of what has been answered.
func (q *IRRQ) Front() *ReadRequest {
	if q.reads.Len() == 0 || q.reads.Front().op != OpReadRequest {
		return nil
	}
	return &q.reads.Front().ReadRequest
}

// FrontOther returns the oldest request if it is another than a Read Request: its opcode, and its RDMAP header, which
// is valid as the result of Front is. The opcode is 0, which asks for nothing, if there is none.
//
// RFC 7306, section 5.4: Atomic Requests "MUST be processed in the order they were delivered by the DDP
// layer on the Responder"; section 7 has the same for Reads among them.
func (q *IRRQ) FrontOther() (op Opcode, header []byte) {
	if q.reads.Len() == 0 || q.reads.Front().op == OpReadRequest {
		return 0, nil
	}
	in := q.reads.Front()
	return in.op, in.other[:in.op.info().HeaderLen]
}

// Pop takes the oldest request out, if there is one. Of another than a Read Request r is zero.
func (q *IRRQ) Pop() (r ReadRequest, ok bool) {
	if q.reads.Len() == 0 {
		return ReadRequest{}, false
	}
	return q.reads.Pop().ReadRequest, true
}

// Terminate returns the Terminate for an error found while answering the oldest
// request, with the request as far as it is not answered.
//
// RFC 5040, section 4.8: "If the terminate occurs after the first RDMA Read
// Request byte is processed, the RDMA Read Request Header is updated to reflect
// the current location of the RDMA Read operation that is in process".
func (q *IRRQ) Terminate(code Code) Terminate {
	t := Terminate{Code: code}
	if q.reads.Len() == 0 || !code.includesDDPHeader() {
		return t
	}
	in := q.reads.Front()
	t.DDPHeader = bytes.Clone(in.header[:])
	t.SegmentLength, t.HasLength = in.length, in.hasLen
	// RFC 7306, section 8.1: of an Atomic Request "the Terminated RDMA Header field is set to
	// zero". [A40]
	if code.includesRDMAPHeader() && in.op == OpReadRequest {
		t.RDMAPHeader = in.ReadRequest.Append(nil)
	}
	return t
}

// Slack reports whether the queue has much more memory than what is in it takes.
func (q *IRRQ) Slack() bool { return q.reads.Slack() }

// Trim gives back memory that was not needed since the Trim before.
func (q *IRRQ) Trim() { q.reads.Trim() }
