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
// returns what is to be sent, in order. While bytes that it gave before are
// not all reported to Sent, it returns the rest of those.
func (q *Machine) Output(now time.Time, g *Gather) [][]byte {
	if !q.inFlight {
		g.reset(q.EMSS, q.Record)
		for !q.enough(g) && q.nextFPDU(g) {
		}
		q.inFlight = len(g.arena) > 0
	}
	q.advance(now)
	return g.left()
}

// enough reports whether g is to be sent as it is: it is full, or a record has just ended and
// of the message under way so much is left that g cannot end with it.
func (q *Machine) enough(g *Gather) bool {
	return g.full() || g.atRecord() && q.busy != sourceNone && int64(q.left()) > int64(gatherBytes-len(g.arena))
}

// left returns how many bytes of the message under way no FPDU has carried yet.
func (q *Machine) left() uint32 {
	if q.busy == sourceRead {
		return q.response.Left()
	}
	return q.sq.At(q.sq.next).seg.Left()
}

// Pending reports whether Output would give bytes now, without building them.
// If in doubt it says yes.
func (q *Machine) Pending() bool {
	switch {
	case q.state == Idle || q.state == Error || !q.mayTransmit():
		return false
	case q.inFlight || q.term != nil && !q.termSent:
		return true
	}
	return q.state == RTS && (q.rtr != 0 || q.nudges > 0 || q.busy != sourceNone ||
		q.sq.next != q.sq.Tail() || q.irrq.Len() > 0 || q.mayAsk())
}

// Sent reports that the LLP has taken n bytes more of what Output gave.
func (q *Machine) Sent(now time.Time, g *Gather, n int) {
	if g.drain {
		q.drain.drained(n)
	}
	g.advance(n)
	q.sent += uint64(n)
	q.stats.SentStream += uint64(n)
	if g.empty() {
		q.inFlight = false
		q.countWrite(g)
		g.reset(q.EMSS, q.Record)
	}
	q.retire()
	q.armNudge(now)
	q.advance(now)
}

// Abandon says that what Output gave will never be sent.
func (q *Machine) Abandon(now time.Time, g *Gather) {
	q.inFlight = false
	g.reset(q.EMSS, q.Record)
	q.advance(now)
}

// nextFPDU builds one FPDU, or moves on without one: local work completes, and
// work that fails calls for a Terminate. It reports whether it did either;
// otherwise nothing may be sent now. g is not full, and so has room for any FPDU.
func (q *Machine) nextFPDU(g *Gather) bool {
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
func (q *Machine) nextSegment(g *Gather) bool {
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

// An FPDU is built in three steps: beginFPDU writes all that stands before its payload, the
// payload is taken in from where it lies, in any number of pieces (Gather.Take), and endFPDU
// writes the rest. Each byte of the payload is read once, to be copied, summed and
// distributed between markers. Where the LLP carries whole segments, there is no FPDU around
// a segment, and each is a slice of what Output returns.

// A draft is an FPDU that is begun: what it takes to end it, and to give it up.
type draft struct {
	tx mpa.Writer // as it was
	at int        // where the FPDU begins in the arena
}

// beginFPDU begins the FPDU of a segment with n bytes of payload.
func (q *Machine) beginFPDU(g *Gather, h *ddp.Header, n int) draft {
	d := draft{tx: q.tx, at: len(g.arena)}
	if q.Layer != LayerMessages {
		g.tx = &q.tx
		g.arena = q.tx.Begin(g.arena, h.Len()+n)
	}
	g.Take(h.Append(g.header[:0]))
	return d
}

// endFPDU ends the FPDU.
func (q *Machine) endFPDU(g *Gather, d draft, h *ddp.Header, n int) {
	if q.Layer == LayerMessages {
		q.endWhole(g, d, h, n)
		return
	}
	g.arena = q.tx.End(g.arena)
	g.tx = nil
	g.framed(len(g.arena))
	q.traceSent(d.tx.Offset(), int(q.tx.Offset()-d.tx.Offset()), h, n)
}

// dropFPDU drops an FPDU whose payload cannot be had.
func (q *Machine) dropFPDU(g *Gather, d draft) {
	q.tx, g.arena, g.tx = d.tx, g.arena[:d.at], nil
}

// frameOwn builds one FPDU around bytes that are not the consumer's.
func (q *Machine) frameOwn(g *Gather, h *ddp.Header, p []byte) {
	q.makeRoom(g, h.Len()+len(p))
	d := q.beginFPDU(g, h, len(p))
	g.Take(p)
	q.endFPDU(g, d, h, len(p))
}

// sendTerminate builds the Terminate, the last FPDU of this half connection.
//
// RFC 5040, section 5.4: the local peer "MUST NOT send any more Messages" after it.
func (q *Machine) sendTerminate(g *Gather) bool {
	if q.termSent {
		return false
	}
	h := q.header(rdmap.OpTerminate)
	h.Last, h.MSN = true, ddp.FirstMSN
	q.frameOwn(g, &h, q.term.Append(g.scratch[:0]))
	q.termSent = true
	return true
}

// rtrSTag names nothing; some RNICs refuse 0 here.
const rtrSTag = 1

// sendRTR builds the Ready-to-Receive indication. It is invisible to both
// consumers. [E09]
func (q *Machine) sendRTR(g *Gather) bool {
	kind := q.rtr
	q.rtr = 0 // it is the first FPDU: there is room for it
	switch kind {
	case mpa.RTRWrite:
		q.sendEmptyWrite(g)
	case mpa.RTRSend:
		h := q.header(rdmap.OpSend)
		h.Last, h.MSN = true, q.sendMSN
		q.sendMSN++
		q.frameOwn(g, &h, nil)
	default:
		q.requestRead(g, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag}, hiddenRead)
	}
	return true
}

// sendEmptyWrite builds a zero-length RDMA Write, which places nothing and is
// checked for nothing.
func (q *Machine) sendEmptyWrite(g *Gather) {
	h := q.header(rdmap.OpWrite)
	h.Last, h.STag = true, rtrSTag
	q.frameOwn(g, &h, nil)
}

// header returns what all DDP headers of an opcode have in common on this
// stream.
func (q *Machine) header(op rdmap.Opcode) (h ddp.Header) {
	q.setHeader(&h, op)
	return h
}

// setHeader sets them in a header that is zero.
func (q *Machine) setHeader(h *ddp.Header, op rdmap.Opcode) { op.SetHeader(h, q.DDPVersion) }

// beginSend begins the next entry of the Send Queue if it may start, or has the peer confirm those before it.
func (q *Machine) beginSend(g *Gather) bool {
	if q.cfg.Confirm && q.mustAsk() && q.askConfirmation(g) {
		return true
	}
	return q.beginEntry(g) || q.askConfirmation(g)
}

// setMessage sets what the headers of all segments of a Send or Write share.
func (q *Machine) setMessage(h *ddp.Header, e *sendEntry) {
	if e.Op == OpWrite || e.Op == OpWriteImm {
		q.setHeader(h, rdmap.OpWrite)
		h.STag, h.TO = e.RemoteSTag, e.RemoteTO
		return
	}
	q.setHeader(h, sendOpcode(e))
	h.MSN, e.msn = q.sendMSN, q.sendMSN
	if e.HasInvalidate {
		h.ULP = e.Invalidate
	}
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
func (q *Machine) sendSegment(g *Gather) bool {
	e := q.sq.At(q.sq.next)
	if e.placed {
		return q.sendImmediate(g, e)
	}
	var h ddp.Header
	n, ok := q.nextOf(&e.seg, g, &h)
	if !ok {
		return false
	}
	d := q.beginFPDU(g, &h, n)
	if fault := q.loadNext(g, e, n); fault != memory.None {
		q.dropFPDU(g, d)
		q.sq.next++
		q.workError(e, localStatus(fault), "the memory of a work request: "+fault.String()+"; keep it registered until that is complete")
		return true
	}
	e.phase, q.busy, g.drain = phaseSending, sourceSend, true
	q.endFPDU(g, d, &h, n)
	switch {
	case h.Last && e.Op == OpWriteImm:
		e.placed = true
	case h.Last:
		q.built(e)
	default:
		q.sendMiddle(g, e, rdmap.OpcodeOf(&h))
	}
	return true
}

func (q *Machine) built(e *sendEntry) {
	e.phase, e.end = phaseBuilt, q.txBytes()
	if e.Op != OpWrite {
		e.msn = q.sendMSN
		q.sendMSN++
	}
	q.sq.next++
	q.toConfirm()
	q.busy, q.turn = sourceNone, sourceRead
}

// load has g take the next n bytes of the request's memory, and moves on. Each byte is
// read once, under the lock of its region.
func (e *sendEntry) load(g *Gather, n int, d memory.Domain) memory.Fault {
	if e.SGL.Len() == 0 {
		g.Take(e.inline[e.off : e.off+n])
		e.off += n
		return memory.None
	}
	sgl := e.SGL.Elements()
	for n > 0 {
		s := &sgl[e.sge]
		part := min(n, s.Length-e.off)
		if f := d.LocalLoad(g, s.Region, &s.Term, s.Offset+e.off, part); f != memory.None {
			return f
		}
		n -= part
		if e.off += part; e.off == s.Length {
			e.sge, e.off = e.sge+1, 0
		}
	}
	return memory.None
}

// InFlight reports whether bytes that Output gave are not all sent.
func (q *Machine) InFlight() bool { return q.inFlight }

// StreamSent returns how many bytes the LLP has taken in Full Operation.
func (q *Machine) StreamSent() uint64 { return q.sent }
