package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/ring"
)

// A Read is one RDMA Read, or another operation that the peer answers, that this side has asked for.
type Read struct {
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32 // bytes asked for
	ID       uint64 // the caller's
	Response Opcode // of another operation than a Read: what answers it. It has neither sink nor size, but this:
	Request  uint32 // its Request Identifier

	early *ddp.Early // what of the sink was placed ahead of its turn
}

// isRead reports whether it is an RDMA Read.
func (r *Read) isRead() bool { return r.Response == 0 }

// An ORQ holds the outstanding RDMA Reads and Atomic Operations of a stream, the
// oldest first, up to the ORD, which is for both together. Responses come in the
// order of the requests, so the oldest is always the one that a response belongs to.
type ORQ struct {
	reads ring.Ring[Read]
	cover ddp.Coverage // of the oldest
}

// NewORQ returns an empty queue for at most ord Reads.
func NewORQ(ord int) ORQ { return ORQ{reads: ring.New[Read](ord)} }

// Len returns how many Reads are outstanding.
func (q *ORQ) Len() int { return q.reads.Len() }

// Full reports whether another Read has to wait.
//
// RFC 5040, section 6.1: "For outbound RDMA Read Requests, the RDMAP layer MUST
// NOT exceed the maximum number of outstanding, outbound RDMA Read Requests".
func (q *ORQ) Full() bool { return q.reads.Full() } // [P46]

// Push adds a Read whose request is sent. It reports false, and adds nothing,
// when the queue is full.
func (q *ORQ) Push(r Read) bool {
	if q.Full() {
		return false
	}
	*q.reads.Add() = r
	return true
}

// Front returns the oldest Read and how many bytes of it have come. Each counts once.
func (q *ORQ) Front() (r Read, got uint32, ok bool) {
	if q.reads.Len() == 0 {
		return Read{}, 0, false
	}
	return *q.reads.Front(), uint32(q.cover.Placed()), true
}

// Pop takes the oldest request out, answered or not.
func (q *ORQ) Pop() (r Read, ok bool) {
	if q.reads.Len() == 0 {
		return Read{}, false
	}
	q.cover.Clear()
	return q.reads.Pop(), true
}

// Check says whether a Read Response segment is a part of the answer to
// the oldest Read. The error is [CodeUnexpectedOpcode] where no Read is
// outstanding, [CodeDDPInvalidSTag] for another STag, [CodeDDPBaseOrBounds] for
// bytes that were not asked for, and [CodeCatastrophicStream] for an L bit
// before all bytes have come, or none in the answer to an empty Read.
//
// RFC 5040, section 5.2.2: "The Data Sink MAY validate that the STag, Tagged
// Offset, and length of the RDMA Read Response Message are the same as [...] in
// the corresponding RDMA Read Request Message."
//
// RFC 5041, section 5.3: segments in increasing order of TO are a SHOULD. They may overlap, too, as
// section 5.2 has the payload of all valid segments placed.
func (q *ORQ) Check(resp *ddp.Segment) *Error {
	if q.reads.Len() == 0 {
		return &Error{CodeUnexpectedOpcode, OpReadResponse, "Opcode", "no RDMA Read is outstanding"}
	}
	r := q.reads.Front()
	if !r.isRead() {
		return &Error{CodeUnexpectedOpcode, OpReadResponse, "Opcode", r.Response.WithArticle() + " is due"}
	}
	if err := q.checkSink(r, resp); err != nil {
		return err
	}
	return q.checkLast(r, resp)
}

// checkSink compares STag and TO. RFC 5041, section 5.2: they "MUST NOT be
// checked for a zero-length Tagged DDP Message". [D23]
func (q *ORQ) checkSink(r *Read, resp *ddp.Segment) *Error {
	n := uint64(resp.PayloadLen())
	if n == 0 {
		return nil
	}
	if resp.STag != r.SinkSTag {
		return &Error{CodeDDPInvalidSTag, OpReadResponse, "STag",
			fmt.Sprintf("expected %#08x, got %#08x", r.SinkSTag, resp.STag)}
	}
	// RFC 5041, section 7.1: "The sum of the DDP Segment payload length and the TO falls in the
	// range of legal offsets": those that were asked for. [D40]
	off, size := resp.TO-r.SinkTO, uint64(r.Size)
	if off > size || n > size-off {
		return &Error{CodeDDPBaseOrBounds, OpReadResponse, "TO",
			fmt.Sprintf("expected bytes %#x to %#x, got %d from %#x on", r.SinkTO, r.SinkTO+size, n, resp.TO)}
	}
	if q.cover.Full(off, n) { // [Z31]
		return &Error{CodeDDPLocalCatastrophic, OpReadResponse, "TO",
			"the Response has more parts with gaps between them than are noted: send it in increasing order of TO"}
	}
	return nil
}

// checkLast holds the L bit against what has come.
func (q *ORQ) checkLast(r *Read, resp *ddp.Segment) *Error {
	whole := q.cover.Placed() + q.cover.Fresh(resp.TO-r.SinkTO, uint64(resp.PayloadLen()))
	// RFC 5041, section 5.4: "DDP MUST Deliver a DDP Message if and only if [...]
	// all of the DDP Segments of the DDP Message have been Placed". [D27]
	// Section 5.2: "A zero-length DDP Message is allowed and MUST consume exactly one
	// DDP Segment." [D22]
	if resp.Last && whole < uint64(r.Size) || !resp.Last && r.Size == 0 {
		return &Error{CodeCatastrophicStream, OpReadResponse, "L",
			fmt.Sprintf("L is %t with %d of %d bytes received", resp.Last, whole, r.Size)}
	}
	return nil
}

// CheckAnswer says whether a response with a Request Identifier is the answer to the oldest request. The error
// is [CodeUnexpectedOpcode] where that is answered by another message, or there is none, and
// [CodeCatastrophicStream] for another Request Identifier: no RFC has a code for it.
//
// RFC 7306, section 5.2.2: "when an invalid Atomic Operation Response Message is delivered
// [...] an error is surfaced." Section 7 has responses of Reads and of Atomic Operations in
// the order of the requests.
func (q *ORQ) CheckAnswer(op Opcode, id uint32) *Error {
	switch r := q.front(); {
	case r == nil || r.Response != op:
		return &Error{CodeUnexpectedOpcode, op, "Opcode", "the oldest request outstanding, if any, is not of its kind"}
	case id != r.Request:
		return &Error{CodeCatastrophicStream, op, "Original Request Identifier",
			fmt.Sprintf("expected %d, got %d", r.Request, id)}
	}
	return nil
}

// front is the oldest request, nil if there is none.
func (q *ORQ) front() *Read {
	if q.reads.Len() == 0 {
		return nil
	}
	return q.reads.Front()
}

// Advance notes that a checked segment is placed, and returns the Read it
// belongs to. With the last segment the Read is done and leaves the queue.
func (q *ORQ) Advance(resp *ddp.Segment) (read Read, done bool) {
	if resp.Last {
		return q.Pop()
	}
	r := q.reads.Front()
	q.cover.Add(resp.TO-r.SinkTO, uint64(resp.PayloadLen()))
	return *r, false
}

// InOrder reports whether the bytes that have come of the oldest Read are the first ones, and a segment that has
// been advanced by ends with them, so that what follows it may be told by Came.
func (q *ORQ) InOrder(resp *ddp.Segment) bool {
	r := q.front()
	return r != nil && q.cover.InOrder(resp.TO-r.SinkTO+uint64(resp.PayloadLen()))
}

// Left returns how many bytes of the oldest Read have not come; 0 if there is none, or it is no Read.
func (q *ORQ) Left() uint32 {
	r := q.front()
	if r == nil || !r.isRead() {
		return 0
	}
	return r.Size - uint32(q.cover.Placed())
}

// Came notes that n more bytes of the oldest Read are placed, which follow those of a segment that was InOrder, and
// are fewer than are left.
func (q *ORQ) Came(n uint32) { q.cover.AddNext(uint64(n)) }

// TakeAhead takes a response segment with payload that came ahead of others: it returns the
// outstanding Read in whose sink the segment lies, and notes that it is placed there. It
// reports false if there is no such Read, if there are several, or if one of the bytes is
// placed already: then it has to wait for its turn.
//
// RFC 5041, section 5.3: a Data Sink "MAY perform Placement of DDP Segments out of order".
func (q *ORQ) TakeAhead(resp *ddp.Segment) (read Read, ok bool) {
	r, several := q.sinkOf(resp)
	if r == nil || several {
		return Read{}, false
	}
	off, n := resp.TO-r.SinkTO, uint64(resp.PayloadLen())
	if off > uint64(r.Size) || n > uint64(r.Size)-off || r == q.reads.Front() && q.cover.Fresh(off, n) < n {
		return Read{}, false
	}
	if r.early == nil {
		r.early = new(ddp.Early)
	}
	return *r, r.early.Take(off, n)
}

// DropAhead takes back what TakeAhead has noted of a segment, which was not placed after all.
func (q *ORQ) DropAhead(resp *ddp.Segment) {
	for i := q.reads.Head(); i != q.reads.Tail(); i++ {
		if r := q.reads.At(i); resp.STag == r.SinkSTag && r.drop(resp) {
			return
		}
	}
}

// drop is DropAhead for the Read that the segment was taken for.
func (r *Read) drop(resp *ddp.Segment) bool {
	return r.early.Drop(resp.TO-r.SinkTO, uint64(resp.PayloadLen()))
}

// HasTurn takes back what TakeAhead has noted of a checked segment, which has its turn. It reports false if the
// segment was not taken for the oldest Read: it came before that was asked for.
func (q *ORQ) HasTurn(resp *ddp.Segment) bool { return q.reads.Front().drop(resp) }

// Early returns what of the oldest Read was placed ahead of its turn, as offsets from SinkTO on; nil if that is
// nothing.
func (q *ORQ) Early() *ddp.Early { return q.reads.Front().early }

// sinkOf returns the first Read whose sink has bytes of a segment, and whether others have too.
func (q *ORQ) sinkOf(resp *ddp.Segment) (first *Read, several bool) {
	n := uint64(resp.PayloadLen())
	for i := q.reads.Head(); i != q.reads.Tail(); i++ {
		r := q.reads.At(i)
		if !r.isRead() || resp.STag != r.SinkSTag || resp.TO-r.SinkTO >= uint64(r.Size) && r.SinkTO-resp.TO >= n {
			continue
		}
		if first != nil {
			return first, true
		}
		first = r
	}
	return first, false
}

// Slack reports whether the queue has much more memory than what is in it takes.
func (q *ORQ) Slack() bool { return q.reads.Slack() }

// Trim gives back memory that was not needed since the Trim before.
func (q *ORQ) Trim() { q.reads.Trim() }
