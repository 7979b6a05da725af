package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// Placement and Delivery apart.
//
// An LLP that is no stream brings whole segments in any order, and some of them again. Each
// has its numbers, [at, end), in the order in which the peer has sent them: the next one
// begins at end. A segment is taken through DDP and RDMAP in its turn, when all before
// it have had theirs: it is delivered then, and nothing is completed, invalidated, answered
// or refused before. What is in its turn when it comes, all of it in a connection without
// losses, goes that way at once.
//
// RFC 5041, section 5.3: a Data Sink "MAY perform Placement of DDP Segments out of order",
// "MUST Deliver a DDP Message to the ULP at most once" and "MUST Deliver DDP Messages to the
// ULP in the order they were sent by the Data Source". [D26]
//
// Of a segment that comes ahead of its turn,
//
//   - the payload of an RDMA Write, of a Read Response, and of a Send for which this QP's own
//     Receive Queue has the receive, is placed at once if all checks pass as things are. Its
//     header waits, and is judged in its turn as that of any other, but for the
//     payload, which has its place;
//   - everything else is held as it came: a Read Request, which MUST NOT be begun before it is
//     delivered (RFC 5040, section 5.5, rules 12 and 17); a Terminate; a Send from a Shared
//     Receive Queue; whatever does not pass its checks, which may be due to what
//     comes before it.
//
// So an error counts in its turn only, and then is the first of the stream, as if all had
// come in order (RFC 5040, section 7.1).
//
// A Send with Invalidate, or the consumer, may have invalidated an STag by the time at which a
// Write has its turn that was placed through it before. It is refused then as it would have
// been in order. Its bytes are there nevertheless: the peer had the right to place them
// when they came, and after the invalidation nothing is placed any more (RFC 5042, section
// 6.2.2). What was placed by segments after an error is there as well: RFC 5040, section 5.5,
// rules 4 to 6, has the contents of a buffer indeterminate until what was to fill it is
// delivered. Nor is there an order among Writes that overlap (rule 3). But each byte of a
// receive, or of the sink of a Read, is as it would have been in order when that completes: of segments
// that overlap, the one that was sent last stays, so that one that has its turn is placed around those
// that came ahead of it (ddp.Early). Only a peer that sends more of a message after its last segment,
// an error in its turn, may find that in place of what it has sent before.
//
// A receive of a Shared Receive Queue is taken by the first segment of a message that has its
// turn, so that those of the queue are used in the order in which messages can be received,
// whichever QP they are for, and a peer that leaves a gap open takes none (RFC 5042, section
// 6.4.3.1). RFC 5040 says nothing of the matter, and the RDMA verbs leave the order to the
// implementation (section 6.3). Segments that follow within the same message are placed ahead
// into the receive that it has.

// Segment takes a whole DDP Segment, which has the numbers from at up to end. It may have come
// before, and ahead of others. ulpdu is read and not kept.
//
// It reports false for one that is beyond what may be held, which is dropped. Where the LLP
// does not bring it again, that has ended the connection.
func (q *Machine) Segment(now time.Time, at, end uint64, ulpdu []byte) (taken bool) {
	q.arrives(now)
	taken = q.takeSegment(at, end, ulpdu)
	q.takeTurns()
	q.arrived(now)
	return taken
}

// Ended says that the peer's half ends in order before a number. That has its turn as segments
// have theirs.
func (q *Machine) Ended(now time.Time, at uint64) {
	q.arrives(now)
	q.ahead.endAt(at, nil)
	q.takeTurns()
	q.arrived(now)
}

// Broken says that the LLP has found an error at a number. That has its turn as segments have
// theirs.
func (q *Machine) Broken(now time.Time, at uint64, err *mpa.Error) {
	q.arrives(now)
	q.ahead.endAt(at, err)
	q.takeTurns()
	q.arrived(now)
}

// listens reports whether what comes from the peer still means anything.
func (q *Machine) listens() bool { return q.state == RTS || q.state == Closing }

// takeSegment takes in a segment that has just come.
func (q *Machine) takeSegment(at, end uint64, ulpdu []byte) (taken bool) {
	a := q.ahead
	switch {
	case !q.listens():
		return true
	case at < a.next || a.has(at):
		q.stats.Ahead.Repeated++
		return true
	case a.pastEnd(at):
		return true
	case at == a.next:
		q.inTurn(at, end, ulpdu)
		return true
	}
	return q.keep(at, end, ulpdu)
}

// inTurn takes the segment through DDP and RDMAP that is next in order.
func (q *Machine) inTurn(at, end uint64, ulpdu []byte) {
	q.ahead.next = end
	if !q.receiving() {
		return
	}
	f := mpa.FPDU{Content: layout.Plain(ulpdu), Offset: at, Size: len(ulpdu)}
	q.count(f.Size)
	q.onULPDU(&f, ulpdu, len(ulpdu))
}

// takeTurns takes all that have their turn by now, and the end of the peer's half.
func (q *Machine) takeTurns() {
	for q.listens() {
		h, ok := q.ahead.pop()
		if !ok {
			break
		}
		q.heldTurn(&h)
	}
	if q.listens() && q.ahead.atEnd() {
		q.endOfPeer()
	}
}

// heldTurn takes a segment that was held.
func (q *Machine) heldTurn(h *heldSegment) {
	if !h.placed {
		q.inTurn(h.at, h.end, h.ulpdu)
		return
	}
	q.ahead.next = h.end
	if !q.receiving() {
		return
	}
	f := mpa.FPDU{Offset: h.at, Size: h.size}
	q.count(f.Size)
	q.inPlace = true
	q.onULPDU(&f, h.header[:min(h.size, len(h.header))], h.size)
	q.inPlace = false
}

func (q *Machine) count(size int) {
	q.stats.RecvFPDUs++
	q.stats.RecvStream += uint64(size)
}

// endOfPeer ends the peer's half, once.
//
// RFC 5041, section 6.2.1: "any further data received after the request is considered an
// error and MUST cause the DDP Stream to be abortively torn down." [D31]
func (q *Machine) endOfPeer() {
	e := &q.ahead.ending
	switch {
	case e.beyond && e.err == nil:
		q.abort(fmt.Errorf("segments came after the end of the peer's half: %w", ErrLost))
	case e.told:
	case e.err != nil:
		e.told = true
		q.mpaError(e.err)
	default:
		e.told = true
		q.closedHalf(0)
	}
}
