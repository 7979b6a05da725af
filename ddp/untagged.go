package ddp

import "fmt"

// FirstMSN is the MSN of the first message of every queue of a stream.
//
// RFC 5041, section 4.3: "The initial value for MSN MUST be one."
const FirstMSN = 1

// maxMessage is the length of the longest message. RFC 5041, section 5.2:
// "The ULP Message Length MUST be less than 2^32." [D21]
const maxMessage = 1<<32 - 1

// An UntaggedQueue is the receiving side of one queue of Untagged Buffers. It knows which
// message is expected and which bytes of it are placed; the buffers themselves are the
// caller's.
//
// A source may send the segments of one message in any order of MO, and a byte in several of
// them, only the one with the L bit last (RFC 5041, sections 4.1, 5.2 and 5.3). Messages of a
// queue come one after the other, those of different queues may interleave.
//
// Check and Place take segments in the order in which they were sent. What an LLP brings
// ahead of others may be placed by TakeAhead, and is given to Check and Place in its turn.
type UntaggedQueue struct {
	qn    uint32
	msn   uint32 // of the message expected or under way
	top   uint32 // the highest MO of its segments so far, but for empty ones
	began bool   // a segment of it has come
	cover Coverage
	early map[uint32]*Early // by MSN: what is placed ahead of its turn
}

// NewUntaggedQueue returns queue qn of a new stream: it expects [FirstMSN].
func NewUntaggedQueue(qn uint32) UntaggedQueue {
	return UntaggedQueue{qn: qn, msn: FirstMSN}
}

// MSN returns the Message Sequence Number of the message that is expected or under way.
func (q *UntaggedQueue) MSN() uint32 { return q.msn }

// Placed returns how many bytes of the message under way are placed. Each counts once, however often it has come.
func (q *UntaggedQueue) Placed() uint64 { return q.cover.Placed() }

// InOrder reports whether what is placed of the message under way are its first bytes, and the segment that was
// placed last ends with them, so that what follows it may be placed by PlaceNext. A segment that has filled a gap
// ends before others.
func (q *UntaggedQueue) InOrder(s *Segment) bool {
	return q.cover.InOrder(uint64(s.MO) + uint64(s.PayloadLen()))
}

// Check says whether an untagged segment may be placed now. buffers is how
// many messages can be received, the expected one and the one under way being
// the first of them; size is the length of that one's buffer in bytes.
//
// The error is, in the order of the checks, [CodeInvalidQN],
// [CodeInvalidMSNRange] or [CodeInvalidMSNNoBuffer], [CodeInvalidMO] or
// [CodeMessageTooLong]. Zero-length segments are checked too: an empty message
// consumes a buffer like any other.
//
// Segments may overlap, and the bytes that were sent last stay. RFC 5041, section 5.2: "the DDP
// layer MUST Place the ULP Payload contained in all valid incoming DDP Segments", and section 7.1,
// which says what is valid, does not ask for bytes that did not come before.
//
// A message is delivered if every byte of it was placed: so nothing is
// delivered that was in the buffer before, from another message or another peer. RFC 5041,
// section 5.2, leaves it open ("the Data Sink is not required to verify that the entire ULP
// Message has been received"), and section 5.4 demands it.
func (q *UntaggedQueue) Check(s *Segment, buffers int, size uint64) *Error {
	// RFC 5041, section 7.1: "The QN is valid for this stream." [D36]
	if s.QN != q.qn {
		return &Error{CodeInvalidQN, "QN", fmt.Sprintf("expected %d, got %d", q.qn, s.QN)}
	}
	if err := q.checkMSN(s, buffers); err != nil {
		return err
	}
	if err := q.checkRange(s, size); err != nil { // [D24]
		return err
	}
	return q.checkLast(s)
}

func (q *UntaggedQueue) checkMSN(s *Segment, buffers int) *Error {
	// RFC 5041, section 7.1: "The Message Sequence Number falls in the range of
	// legal Message Sequence Numbers, for the queue defined by the QN." In order
	// the range is the expected one. [D37]
	if s.MSN != q.msn {
		return &Error{CodeInvalidMSNRange, "MSN", fmt.Sprintf("expected %d on queue %d, got %d", q.msn, q.qn, s.MSN)}
	}
	// RFC 5041, section 7.1: "The QN and MSN have an associated buffer that
	// allows Placement of the payload." [D37]
	if buffers <= 0 {
		return &Error{CodeInvalidMSNNoBuffer, "MSN", fmt.Sprintf("no buffer on queue %d for message %d", q.qn, s.MSN)}
	}
	return nil
}

func (q *UntaggedQueue) checkRange(s *Segment, size uint64) *Error {
	size = min(size, maxMessage)
	mo, n := uint64(s.MO), uint64(s.PayloadLen())
	// RFC 5041, section 7.1: "The MO falls in the range of legal offsets
	// associated with the Untagged Buffer." The byte after the last is in it
	// here, so that a message which goes on where the buffer ends is told by its
	// length and not by its MO. [D38]
	if mo > size {
		return &Error{CodeInvalidMO, "MO", fmt.Sprintf("expected 0 to %d, got %d", size, mo)}
	}
	// RFC 5041, section 7.1: "The sum of the DDP Segment payload length and the
	// MO falls in the range of legal offsets associated with the Untagged Buffer." [D38]
	if n > size-mo {
		return &Error{CodeMessageTooLong, "MO", fmt.Sprintf("MO %d and length %d exceed the buffer's length of %d",
			mo, n, size)}
	}
	if q.cover.Full(mo, n) { // [Z31]
		return &Error{CodeInvalidMO, "MO", fmt.Sprintf(
			"MO %d and length %d make more than %d parts of one message with gaps between them", mo, n, maxIslands)}
	}
	return nil
}

// checkLast holds a segment with the L bit against what was placed before.
func (q *UntaggedQueue) checkLast(s *Segment) *Error {
	if !s.Last {
		return nil
	}
	mo, low := uint64(s.MO), q.cover.low
	// RFC 5041, section 4.1: "For an Untagged DDP Message, the DDP Segment with
	// the L bit set to 1 MUST carry the highest MO." [D11]
	if s.MO < q.top {
		return &Error{CodeInvalidMO, "MO", fmt.Sprintf("last segment at %d, one at %d came before", mo, q.top)}
	}
	// RFC 5041, section 5.4: the message ends where its last segment does. [D28]
	if end := q.cover.highestEnd(); end > mo+uint64(s.PayloadLen()) {
		return &Error{CodeInvalidMO, "MO", fmt.Sprintf("last segment at %d, with %d bytes; bytes up to %d came before",
			mo, s.PayloadLen(), end)}
	}
	// RFC 5041, section 5.4: "DDP MUST Deliver a DDP Message if and only if [...]
	// all of the DDP Segments of the DDP Message have been Placed". [D27]
	if low < mo {
		return &Error{CodeInvalidMO, "MO", fmt.Sprintf("last segment at %d, and byte %d has not come before it",
			mo, low)}
	}
	// RFC 5041, section 5.2: "A zero-length DDP Message is allowed and MUST consume
	// exactly one DDP Segment." [D22]
	if q.began && low == 0 && s.PayloadLen() == 0 {
		return &Error{CodeInvalidMO, "L", "last segment of an empty message, which has another segment"}
	}
	return nil
}

// Place notes that a checked segment's payload is in its buffer. With the
// segment that has the L bit the message is delivered: msgLen is its length,
// and the queue goes on to the next MSN.
func (q *UntaggedQueue) Place(s *Segment) (msgLen uint32, delivered bool) {
	mo, n := uint64(s.MO), uint64(s.PayloadLen())
	q.cover.Add(mo, n)
	q.began = true
	if n > 0 {
		q.top = max(q.top, s.MO)
	}
	if !s.Last {
		return 0, false
	}
	// RFC 5041, section 4.3: the MSN "MUST be increased by one (modulo 2^32)",
	// it "MUST wrap to 0 after a value of 0xFFFFFFFF". [D17]
	if q.early != nil {
		delete(q.early, q.msn)
	}
	q.msn++
	q.top, q.began = 0, false
	q.cover.Clear()
	// RFC 5041, section 5.4: the length "may be calculated by adding the MO and
	// the ULP Payload length in the last DDP Segment". [D28]
	return uint32(mo + n), true
}

// PlaceNext is Place for a segment of n bytes that is the sequel of one after which the queue was InOrder, and that
// ends within the buffer: it needs no Check. It is not the last.
func (q *UntaggedQueue) PlaceNext(n int) {
	q.top = uint32(q.cover.low)
	q.cover.AddNext(uint64(n))
}
