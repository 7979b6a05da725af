package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap/ring"
)

// A Read is one RDMA Read, or one Atomic Operation, that this side has asked for.
type Read struct {
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32 // octets asked for
	ID       uint64 // the caller's
	Atomic   bool   // it is an Atomic Operation, which has neither sink nor size, but this:
	Request  uint32 // its Request Identifier

	ahead *ddp.Coverage // what of the sink was placed ahead of its turn
}

// An ORQ holds the outstanding RDMA Reads and Atomic Operations of a stream, the
// oldest first, up to the ORD, which is for both together. Responses come in the
// order of the requests, so the oldest is always the one that a response belongs to.
type ORQ struct {
	reads ring.Ring[Read]
	got   uint32 // octets of the oldest which have come
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

// Front returns the oldest Read and how many octets of it have come.
func (q *ORQ) Front() (r Read, got uint32, ok bool) {
	if q.reads.Len() == 0 {
		return Read{}, 0, false
	}
	return *q.reads.Front(), q.got, true
}

// Pop takes the oldest request out, answered or not.
func (q *ORQ) Pop() (r Read, ok bool) {
	if q.reads.Len() == 0 {
		return Read{}, false
	}
	q.got = 0
	return q.reads.Pop(), true
}

// Check says whether a Read Response segment is the next part of the answer to
// the oldest Read. The error is [CodeUnexpectedOpcode] where no Read is
// outstanding, [CodeDDPInvalidSTag] for another STag, [CodeDDPBaseOrBounds] for
// another TO and for more octets than asked for, and [CodeCatastrophicStream]
// for an L bit before the end or none at it.
//
// RFC 5040, section 5.2.2: "The Data Sink MAY validate that the STag, Tagged
// Offset, and length of the RDMA Read Response Message are the same as [...] in
// the corresponding RDMA Read Request Message."
func (q *ORQ) Check(resp *ddp.Segment) *Error {
	// [P28]
	if q.reads.Len() == 0 {
		return &Error{CodeUnexpectedOpcode, OpReadResponse, "Opcode", "no RDMA Read is outstanding"}
	}
	r := q.reads.Front()
	if r.Atomic {
		return &Error{CodeUnexpectedOpcode, OpReadResponse, "Opcode", "the response of an Atomic Operation is due"}
	}
	if err := q.checkSink(r, resp); err != nil {
		return err
	}
	left := uint64(r.Size - q.got)
	n := uint64(resp.PayloadLen())
	if n > left {
		return &Error{CodeDDPBaseOrBounds, OpReadResponse, "length", fmt.Sprintf("expected at most the last %d of %d, got %d", left, r.Size, n)}
	}
	if resp.Last != (n == left) {
		return &Error{CodeCatastrophicStream, OpReadResponse, "L", fmt.Sprintf("L is %t with %d of %d octets received", resp.Last, uint64(q.got)+n, r.Size)}
	}
	return nil
}

// checkSink compares STag and TO. RFC 5041, section 5.2: they "MUST NOT be
// checked for a zero-length Tagged DDP Message". [D23]
func (q *ORQ) checkSink(r *Read, resp *ddp.Segment) *Error {
	if resp.PayloadLen() == 0 {
		return nil
	}
	if resp.STag != r.SinkSTag {
		return &Error{CodeDDPInvalidSTag, OpReadResponse, "STag", fmt.Sprintf("expected %#08x, got %#08x", r.SinkSTag, resp.STag)}
	}
	if to := r.SinkTO + uint64(q.got); resp.TO != to {
		return &Error{CodeDDPBaseOrBounds, OpReadResponse, "TO", fmt.Sprintf("expected %#x, got %#x", to, resp.TO)}
	}
	return nil
}

// CheckAtomic says whether an Atomic Response is the answer to the oldest request. The error
// is [CodeUnexpectedOpcode] where that is no Atomic Operation, or there is none, and
// [CodeCatastrophicStream] for another Request Identifier: no RFC has a code for it.
//
// RFC 7306, section 5.2.2: "when an invalid Atomic Operation Response Message is delivered
// [...] an error is surfaced." Section 7 has responses of Reads and of Atomic Operations in
// the order of the requests.
func (q *ORQ) CheckAtomic(resp *AtomicResponse) *Error {
	// [X03]
	switch r := q.front(); {
	case r == nil || !r.Atomic:
		return &Error{CodeUnexpectedOpcode, OpAtomicResponse, "Opcode", "no Atomic Operation is the oldest request outstanding"}
	case resp.ID != r.Request:
		return &Error{CodeCatastrophicStream, OpAtomicResponse, "Original Request Identifier", fmt.Sprintf("expected %d, got %d", r.Request, resp.ID)}
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
	if !resp.Last {
		q.Came(uint32(resp.PayloadLen()))
		return *q.reads.Front(), false
	}
	q.got = 0
	return q.reads.Pop(), true
}

// Left returns how many octets of the oldest Read have not come; 0 if there is none, or an Atomic Operation is due.
func (q *ORQ) Left() uint32 {
	r := q.front()
	if r == nil || r.Atomic {
		return 0
	}
	return r.Size - q.got
}

// Came notes that n more octets of the oldest Read are placed, fewer than are left.
func (q *ORQ) Came(n uint32) { q.got += n }

// TakeAhead takes a response segment with payload that came ahead of others: it returns the
// outstanding Read in whose sink the segment lies, and notes that it is placed there. It
// reports false if there is no such Read, if there are several, or if one of the octets is
// placed already: then Check has to judge it in its turn first.
//
// RFC 5041, section 5.3: a Data Sink "MAY perform Placement of DDP Segments out of order".
func (q *ORQ) TakeAhead(resp *ddp.Segment) (read Read, ok bool) {
	r, several := q.sinkOf(resp)
	if r == nil || several {
		return Read{}, false
	}
	off, n := resp.TO-r.SinkTO, uint64(resp.PayloadLen())
	if off > uint64(r.Size) || n > uint64(r.Size)-off || r == q.reads.Front() && off < uint64(q.got) {
		return Read{}, false
	}
	if r.ahead == nil {
		r.ahead = new(ddp.Coverage)
	}
	return *r, r.ahead.Take(off, n)
}

// sinkOf returns the first Read whose sink has octets of a segment, and whether others have too.
func (q *ORQ) sinkOf(resp *ddp.Segment) (first *Read, several bool) {
	n := uint64(resp.PayloadLen())
	for i := q.reads.Head(); i != q.reads.Tail(); i++ {
		r := q.reads.At(i)
		if r.Atomic || resp.STag != r.SinkSTag || resp.TO-r.SinkTO >= uint64(r.Size) && r.SinkTO-resp.TO >= n {
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
