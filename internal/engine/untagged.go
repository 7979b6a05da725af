package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Sends of the peer's: which receive each gets, its placement there, and its delivery.

// onSend places a segment of a Send and completes the receive with the last.
func (q *Machine) onSend(f *mpa.FPDU, s *ddp.Segment) {
	queue := &q.queues[rdmap.QNSend]
	buffers := q.ensureReceive(s)
	if err := queue.Check(s, buffers, q.capacity); err != nil {
		q.receiveError(f, s, rdmap.FromDDP(err, rdmap.OpcodeOf(&s.Header)))
		return
	}
	if fault := q.placeSend(f, s); fault != memory.None {
		q.completeReceive(localStatus(fault))
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Offset: f.Offset,
			Reason: "the memory of the receive for a Send: " + fault.String() +
				"; keep it registered until the receive is complete"}, nil)
		return
	}
	q.partial[partialSend] = !s.Last
	q.drain.drained(s.PayloadLen())
	q.countOdd(s, uint64(s.MO) != queue.Placed())
	if length, delivered := queue.Place(s); delivered {
		q.takeWritten()
		q.delivered(f, s, length)
	} else if queue.InOrder(s) {
		q.sequelOf(s)
	}
}

// countOdd counts segments of a Send, or of a Read Response, that are legal and yet unusual. [Z30]
func (q *Machine) countOdd(s *ddp.Segment, disorder bool) {
	if disorder {
		q.stats.Odd.Disorder++
	}
	if s.PayloadLen() == 0 && !s.Last {
		q.stats.Odd.Empty++
	}
}

// ensureReceive takes a receive for the message under way and returns how many
// there are: one or none. A segment that is not of the message expected takes
// none, as other QPs may want the receives of a shared queue.
func (q *Machine) ensureReceive(s *ddp.Segment) int {
	if !q.taken && s.MSN == q.queues[rdmap.QNSend].MSN() {
		q.taken = q.takeReceive()
	}
	if q.taken {
		return 1
	}
	return 0
}

// takeReceive has the next receive be the current one, and reports whether there is one.
func (q *Machine) takeReceive() bool {
	if q.current == nil {
		q.current = new(RecvWork)
	}
	q.tookOne = true
	taken := q.recv.Take(q.current)
	q.capacity = q.roomOf(q.current)
	if !taken && q.discarding {
		*q.current, q.capacity = RecvWork{discards: true}, MaxMessage+q.prefix()
		return true
	}
	return taken
}

// receiveError ends the connection over a Send that cannot be received. One
// that is too long takes its receive with it.
func (q *Machine) receiveError(f *mpa.FPDU, s *ddp.Segment, err *rdmap.Error) {
	switch err.Code {
	case rdmap.CodeDDPMessageTooLong:
		q.completeReceive(StatusLocalLength)
		err.Reason += "; receives (or QPConfig.Receives.Size) must be as long as the peer's longest Send"
	case rdmap.CodeDDPInvalidMSNNoBuffer:
		err.Reason += ": " + q.recv.Refusal()
	}
	q.segmentError(f, s, err)
}

func (q *Machine) placeSend(f *mpa.FPDU, s *ddp.Segment) memory.Fault {
	queue, mo := &q.queues[rdmap.QNSend], uint64(s.MO)
	if q.inPlace {
		queue.DropAhead(s)
		return q.checkScattered(mo, s.PayloadLen())
	}
	p := payload(f, s)
	if early := q.overlapped(queue.Early(), mo, p.Len()); early != nil {
		return placeAround(early, mo, p, func(mo uint64,
			p layout.Content) memory.Fault {
			return q.scatter(q.current, mo, p)
		})
	}
	return q.scatter(q.current, mo, p)
}

// overlapped returns what was placed early, if n bytes that have their turn overlap it, and are to be placed around
// it. What was shown comes once more, if it is on the stream at all: it is placed then.
func (q *Machine) overlapped(early *ddp.Early, from uint64, n int) *ddp.Early {
	switch a, b := early.Free(from, from+uint64(n)); {
	case b-a == uint64(n):
		return nil
	case q.Layer == LayerStream:
		clear(q.ahead.held)
		return nil
	}
	return early
}

// placeAround places the payload of a segment that has its turn, except where one that was sent after it
// is in place already: where the two overlap, the later bytes stay. [D24]
func placeAround(early *ddp.Early, from uint64, p layout.Content,
	place func(from uint64, p layout.Content) memory.Fault) memory.Fault {
	for p.Len() > 0 {
		a, b := early.Free(from, from+uint64(p.Len()))
		if a == b {
			break
		}
		_, p = p.Cut(int(a - from))
		free, rest := p.Cut(int(b - a))
		if f := place(a, free); f != memory.None {
			return f
		}
		from, p = b, rest
	}
	return memory.None
}

// scatter copies payload to the bytes of a receive from offset mo on.
func (q *Machine) scatter(to *RecvWork, mo uint64, p layout.Content) memory.Fault {
	mo, p = q.split(to, mo, p)
	sgl := to.SGL.Elements()
	for i := range sgl {
		s := &sgl[i]
		if mo >= uint64(s.Length) {
			mo -= uint64(s.Length)
			continue
		}
		room := s.Length - int(mo)
		if p.Len() <= room {
			return q.cfg.Memory.LocalPlace(s.Region, &s.Term, s.Offset+int(mo), p)
		}
		front, rest := p.Cut(room)
		if f := q.cfg.Memory.LocalPlace(s.Region, &s.Term, s.Offset+int(mo), front); f != memory.None {
			return f
		}
		p, mo = rest, 0
	}
	return memory.None
}

// checkScattered judges the memory of n bytes of the receive from offset mo on, where scatter
// has put them before.
func (q *Machine) checkScattered(mo uint64, n int) memory.Fault {
	mo, n = q.splitPlaced(mo, n)
	sgl := q.current.SGL.Elements()
	for i := range sgl {
		s := &sgl[i]
		if mo >= uint64(s.Length) {
			mo -= uint64(s.Length)
			continue
		}
		part := min(n, s.Length-int(mo))
		if f := q.cfg.Memory.LocalCheck(s.Region, &s.Term, s.Offset+int(mo), part, true); f != memory.None {
			return f
		}
		n, mo = n-part, 0
	}
	return memory.None
}

// delivered completes the receive of a Send. An STag to be invalidated is,
// before the consumer hears of the message.
func (q *Machine) delivered(f *mpa.FPDU, s *ddp.Segment, length uint32) {
	stag, invalidates := rdmap.InvalidateSTag(&s.Header)
	if invalidates {
		if fault := q.cfg.Memory.Invalidate(stag); fault != memory.None {
			q.completeReceive(StatusRemoteInvalidate).Invalidated = stag
			q.fail(&Failure{Code: invalidateCodes[fault], Offset: f.Offset, Reason: invalidateReason(stag, fault)}, s)
			return
		}
	}
	q.drain.progress()
	length, prefix := q.withoutPrefix(length)
	c := q.completeReceive(StatusSuccess)
	c.Length, c.Prefix, c.Solicited = length, prefix, rdmap.OpcodeOf(&s.Header).Solicited()
	c.Invalidated, c.HasInvalid = stag, invalidates
}
