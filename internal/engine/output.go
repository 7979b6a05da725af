package engine

import (
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// source is where an outgoing message comes from. Messages are not interleaved:
// one begun is finished before the next (siw, for one, expects that).
type source uint8

const (
	sourceNone source = iota
	sourceSend        // the Send Queue
	sourceRead        // the peer's Read Requests
)

// Output builds FPDUs into g until it is full or nothing may be sent, and
// returns what is to be sent, in order. While octets that it gave before are
// not all reported to Sent, it returns the rest of those.
func (q *QP) Output(now time.Time, g *Gather) [][]byte {
	if !q.inFlight {
		g.reset()
		for !g.full() && q.nextFPDU(g) {
		}
		g.seal()
		q.inFlight = len(g.vec) > 0
	}
	q.settle(now)
	return g.left()
}

// Pending reports whether Output would give octets now, without building them.
// It errs on the side of yes.
func (q *QP) Pending() bool {
	switch {
	case q.state == Idle || q.state == Error || !q.mayTransmit():
		return false
	case q.inFlight || q.term != nil && !q.termSent:
		return true
	}
	return q.state == RTS && (q.rtr != 0 || q.nudges > 0 || q.busy != sourceNone ||
		q.sq.next != q.sq.tail || q.irrq.Len() > 0)
}

// Sent reports that the LLP has taken n octets more of what Output gave.
func (q *QP) Sent(now time.Time, g *Gather, n int) {
	g.advance(n)
	q.sent += uint64(n)
	q.stats.SentStream += uint64(n)
	if len(g.left()) == 0 {
		q.inFlight = false
		g.reset()
	}
	q.retire()
	q.armNudge(now)
	q.settle(now)
}

// Abandon says that what Output gave will never be sent.
func (q *QP) Abandon(now time.Time, g *Gather) {
	q.inFlight = false
	g.reset()
	q.settle(now)
}

// nextFPDU builds one FPDU, or moves on without one: local work completes, and
// work that fails calls for a Terminate. It reports whether it did either;
// otherwise nothing may be sent now, or g has no room for it.
func (q *QP) nextFPDU(g *Gather) bool {
	if q.state == Idle || q.state == Error || !q.mayTransmit() {
		return false
	}
	if q.term != nil {
		return q.sendTerminate(g)
	}
	if q.state != RTS {
		return false
	}
	// RFC 6581, section 9.2: "the initiator MUST generate one of the negotiated
	// RTR indications", before any other FPDU. [E09]
	if q.rtr != 0 {
		return q.sendRTR(g)
	}
	if q.busy == sourceNone && q.nudges > 0 {
		return q.sendNudge(g)
	}
	return q.nextSegment(g)
}

// nextSegment goes on with the message under way or begins the next one, in
// turn from the Send Queue and the peer's Reads, so that neither starves.
func (q *QP) nextSegment(g *Gather) bool {
	switch q.busy {
	case sourceSend:
		return q.sendSegment(g)
	case sourceRead:
		return q.respond(g)
	}
	if q.turn == sourceRead {
		return q.beginResponse(g) || q.beginSend(g)
	}
	return q.beginSend(g) || q.beginResponse(g)
}

// fits reports whether an FPDU with n octets of payload can still be built into
// the arena; copies is how often the payload stands there.
func fits(g *Gather, n, copies int) bool {
	overhead := 64 + 4*(n/508+2)
	return g.room() >= copies*n+overhead
}

// frame builds one FPDU around header and pieces, n octets in all.
func (q *QP) frame(g *Gather, h *ddp.Header, pieces [][]byte, n int) {
	offset := q.tx.Offset()
	switch {
	case q.MarkersSend:
		q.frameMarked(g, h, pieces)
	case n <= copyBelow:
		q.frameCopied(g, h, pieces)
	default:
		q.frameInPlace(g, h, pieces, n)
	}
	g.total += int(q.tx.Offset() - offset)
	q.traceSent(offset, h, n)
}

// frameMarked copies all octets, as markers come between them.
func (q *QP) frameMarked(g *Gather, h *ddp.Header, pieces [][]byte) {
	var ulpdu [1 + MaxSGE][]byte
	ulpdu[0] = h.Append(q.ddpHeader[:0])
	k := 1 + copy(ulpdu[1:], pieces)
	g.arena = q.tx.Append(g.arena, ulpdu[:k]...)
}

// frameCopied copies a short payload: one slice less costs more than the copy.
func (q *QP) frameCopied(g *Gather, h *ddp.Header, pieces [][]byte) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	g.arena = q.tx.Begin(g.arena, h.Len()+n)
	start := len(g.arena)
	g.arena = h.Append(g.arena)
	for _, p := range pieces {
		g.arena = append(g.arena, p...)
	}
	q.tx.Payload(g.arena[start:])
	g.arena = q.tx.End(g.arena)
}

// frameInPlace leaves the payload where it is.
func (q *QP) frameInPlace(g *Gather, h *ddp.Header, pieces [][]byte, n int) {
	g.arena = q.tx.Begin(g.arena, h.Len()+n)
	start := len(g.arena)
	g.arena = h.Append(g.arena)
	q.tx.Payload(g.arena[start:])
	for _, p := range pieces {
		g.refer(p)
		q.tx.Payload(p)
	}
	g.arena = q.tx.End(g.arena)
}

// sendTerminate builds the Terminate, the last FPDU of this half connection.
//
// RFC 5040, section 5.4: after a Terminate "no more" messages are sent.
func (q *QP) sendTerminate(g *Gather) bool {
	if q.termSent || !fits(g, 128, 1) {
		return false
	}
	h := q.header(rdmap.OpTerminate)
	h.Last, h.MSN = true, ddp.FirstMSN
	q.onePiece[0] = q.term.Append(q.scratch[:0])
	q.frame(g, &h, q.onePiece[:], len(q.onePiece[0]))
	q.termSent = true
	return true
}

// rtrSTag names nothing; some RNICs refuse 0 here.
const rtrSTag = 1

// sendRTR builds the Ready-to-Receive indication. It is invisible to both
// consumers. [E09]
func (q *QP) sendRTR(g *Gather) bool {
	kind := q.rtr
	q.rtr = 0 // it is the first FPDU: there is room for it
	switch kind {
	case mpa.RTRWrite:
		q.sendEmptyWrite(g)
	case mpa.RTRSend:
		h := q.header(rdmap.OpSend)
		h.Last, h.MSN = true, q.sendMSN
		q.sendMSN++
		q.frame(g, &h, nil, 0)
	default:
		q.requestRead(g, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag}, hiddenRead)
	}
	return true
}

// sendEmptyWrite builds a zero-length RDMA Write, which places nothing and is
// checked for nothing.
func (q *QP) sendEmptyWrite(g *Gather) {
	h := q.header(rdmap.OpWrite)
	h.Last, h.STag = true, rtrSTag
	q.frame(g, &h, nil, 0)
}

// header returns what all DDP headers of an opcode have in common on this
// stream.
func (q *QP) header(op rdmap.Opcode) ddp.Header { return op.Header(q.DDPVersion) }

// beginSend begins the next entry of the Send Queue if it may start.
func (q *QP) beginSend(g *Gather) bool {
	if q.sq.next == q.sq.tail {
		return false
	}
	e := q.sq.at(q.sq.next)
	if e.Fence && q.orq.Len() > 0 {
		return false
	}
	switch e.Op {
	case OpLocalInvalidate:
		return q.invalidateLocal(e)
	case OpRead:
		return q.beginRead(g, e)
	}
	// Begun it is with its first segment: there may be no room for that now.
	e.seg = ddp.NewSegmenter(q.messageHeader(e), e.length)
	return q.sendSegment(g)
}

// messageHeader is the header that all segments of a Send or Write share.
func (q *QP) messageHeader(e *sendEntry) ddp.Header {
	if e.Op == OpWrite {
		h := q.header(rdmap.OpWrite)
		h.STag, h.TO = e.RemoteSTag, e.RemoteTO
		return h
	}
	h := q.header(sendOpcode(e))
	h.MSN = q.sendMSN
	if e.HasInvalidate {
		h.ULP = e.Invalidate
	}
	return h
}

func sendOpcode(e *sendEntry) rdmap.Opcode {
	switch {
	case e.HasInvalidate && e.Solicited:
		return rdmap.OpSendSEInvalidate
	case e.HasInvalidate:
		return rdmap.OpSendInvalidate
	case e.Solicited:
		return rdmap.OpSendSE
	}
	return rdmap.OpSend
}

// sendSegment builds the next, or first, segment of the Send or Write that is
// next in the queue.
func (q *QP) sendSegment(g *Gather) bool {
	e := q.sq.at(q.sq.next)
	seg := e.seg
	h, n, ok := seg.Next(q.MULPDU)
	copies := 0
	if q.MarkersSend || n <= copyBelow {
		copies = 1
	}
	if !ok || !fits(g, n, copies) {
		return false
	}
	var pieces [MaxSGE][]byte
	k, fault := e.take(&pieces, n, q.cfg.Memory.PD)
	if fault != memory.None {
		q.sq.next++
		q.workError(e, localStatus(fault), "the memory of a work request: "+fault.String())
		return true
	}
	e.seg, e.phase, q.busy = seg, phaseSending, sourceSend
	q.frame(g, &h, pieces[:k], n)
	if h.Last {
		q.built(e)
	}
	return true
}

func (q *QP) built(e *sendEntry) {
	e.phase, e.end = phaseBuilt, q.tx.Offset()
	if e.Op == OpSend {
		q.sendMSN++
	}
	q.sq.next++
	q.busy, q.turn = sourceNone, sourceRead
}

// take collects the next n octets of the request's memory and moves on.
func (e *sendEntry) take(pieces *[MaxSGE][]byte, n int, pd uint32) (k int, f memory.Fault) {
	if e.NumSGE == 0 {
		pieces[0] = e.inline[e.off : e.off+n]
		e.off += n
		return 1, memory.None
	}
	for n > 0 {
		s := &e.SGL[e.sge]
		m := min(n, s.Length-e.off)
		if m > 0 {
			pieces[k], f = s.Region.Local(pd, s.Offset+e.off, m, false)
			if f != memory.None {
				return 0, f
			}
			k++
		}
		n -= m
		if e.off += m; e.off == s.Length {
			e.sge, e.off = e.sge+1, 0
		}
	}
	return k, memory.None
}

// invalidateLocal carries out a local invalidation, which sends nothing.
func (q *QP) invalidateLocal(e *sendEntry) bool {
	q.sq.next++
	if f := e.Target.LocalInvalidate(q.cfg.Memory.PD); f != memory.None {
		q.workError(e, StatusInvalidateFailed, "local invalidation: "+f.String())
		return true
	}
	e.phase = phaseDone
	q.retire()
	return true
}

// InFlight reports whether octets that Output gave are not all sent.
func (q *QP) InFlight() bool { return q.inFlight }

// StreamSent returns how many octets the LLP has taken in Full Operation.
func (q *QP) StreamSent() uint64 { return q.sent }

// SetMULPDU follows a change of the EMSS. Segments that are built stay as they
// are. [S03] [D01] [D02]
func (q *QP) SetMULPDU(n int) { q.MULPDU = n }
