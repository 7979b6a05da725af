package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// hiddenRead is the position of a Read that no consumer asked for: the RTR.
const hiddenRead = ^uint64(0)

// A Read Request has one sink. An entry with several elements sends one request for each of them, and is complete when
// the last is answered. Its position, which an outstanding Read has as its ID, has the number of the element above it.
const elementShift = 56

func sinkID(pos uint64, element int) uint64 { return pos | uint64(element)<<elementShift }
func sinkPos(id uint64) uint64              { return id & (1<<elementShift - 1) }

// sinkOf returns the entry and the element that the response to an outstanding Read is for.
func (q *Machine) sinkOf(id uint64) (e *sendEntry, element int) {
	return q.sq.At(sinkPos(id)), int(id >> elementShift)
}

// sink returns the memory that the response to an outstanding Read is for.
func (q *Machine) sink(id uint64) *SGE {
	e, element := q.sinkOf(id)
	return &e.SGL.Elements()[element]
}

// nextSink returns the number of the first element with bytes, from one on, or how many elements there are.
func (e *sendEntry) nextSink(from int) int {
	sgl := e.SGL.Elements()
	for from < len(sgl) && sgl[from].Length == 0 {
		from++
	}
	return from
}

// sinks returns how many Read Requests the entry takes.
func (e *sendEntry) sinks() (n uint32) {
	for _, s := range e.SGL.Elements() {
		if s.Length > 0 {
			n++
		}
	}
	return max(n, 1)
}

// beginRead sends the next Read Request of a Send Queue entry. With ORD Reads
// outstanding the whole queue stalls here, so that the order is kept (RDMA
// verbs 6.5).
func (q *Machine) beginRead(g *Gather, e *sendEntry) bool {
	if moved, ok := q.mayRequest(e); !ok {
		return moved
	}
	element := 0
	if e.length > 0 {
		element = e.nextSink(e.sge)
	}
	r, fault := e.readRequest(q.cfg.Memory, element)
	if fault != memory.None {
		q.sq.next++
		q.workError(e, localStatus(fault), "the sink of an RDMA Read: "+fault.String())
		return true
	}
	if e.phase != phaseReading {
		e.phase, e.msn = phaseReading, q.readMSN
	}
	q.asks()
	q.requestRead(g, r, sinkID(q.sq.next, element))
	g.drain = true
	if e.sge, e.off = e.nextSink(element+1), e.off+int(r.Size); e.sge >= e.SGL.Len() {
		q.sq.next++
	}
	q.turn = sourceRead
	return true
}

// mayRequest reports whether the request of a Read, or of an Atomic Operation, may be sent now;
// if not, whether the queue has moved on without it.
func (q *Machine) mayRequest(e *sendEntry) (moved, ok bool) {
	switch {
	case q.ORD == 0:
		q.sq.next++
		q.workError(e, StatusNoReadResources, e.Op.Info().Asked+
			" was posted before there was a connection: "+ErrNoReads.Error())
		return true, false
	case q.peerEnded():
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream,
			Reason: "the peer has closed its half, " + e.Op.Info().Asked + " cannot be answered"}, nil)
		return true, false
	}
	return false, !q.orq.Full()
}

// readRequest names the sink by the STag of its region. Of the region, local
// write is asked, here and again when the response arrives; the response is
// held against the request byte by byte, so the peer gains no right to it.
func (e *sendEntry) readRequest(d memory.Domain, element int) (rdmap.ReadRequest, memory.Fault) {
	r := rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: e.RemoteSTag, SrcTO: e.RemoteTO + uint64(e.off)}
	if e.length == 0 {
		return r, memory.None
	}
	s := &e.SGL.Elements()[element]
	r.Size = uint32(s.Length)
	if f := d.LocalCheck(s.Region, &s.Term, s.Offset, s.Length, true); f != memory.None {
		return r, f
	}
	r.SinkSTag, r.SinkTO = s.Region.STag(), s.Region.Base()+uint64(s.Offset)
	return r, memory.None
}

func (q *Machine) requestRead(g *Gather, r rdmap.ReadRequest, pos uint64) {
	h := q.header(rdmap.OpReadRequest)
	h.Last, h.MSN = true, q.readMSN
	q.readMSN++
	q.orq.Push(rdmap.Read{SinkSTag: r.SinkSTag, SinkTO: r.SinkTO, Size: r.Size, ID: pos})
	q.frameOwn(g, &h, r.Append(g.scratch[:0]))
}

// onReadResponse places a segment of the response to the oldest Read.
func (q *Machine) onReadResponse(f *mpa.FPDU, s *ddp.Segment) {
	if err := q.orq.Check(s); err != nil {
		q.segmentError(f, s, err)
		return
	}
	if q.inPlace && s.PayloadLen() > 0 && !q.orq.HasTurn(s) {
		// It was placed for a Read that is complete, and the consumer may have changed that memory since.
		if q.inPlace = false; f.Content.Len() == 0 {
			q.segmentError(f, s, &rdmap.Error{Code: rdmap.CodeUnexpectedOpcode, Op: rdmap.OpReadResponse,
				Field: "Opcode", Reason: "it was sent before the RDMA Read was asked for"})
			return
		}
	}
	read, got, _ := q.orq.Front()
	if fault := q.placeResponse(f, &read, s); fault != memory.None {
		e, _ := q.sinkOf(read.ID)
		e.status = localStatus(fault)
		q.fail(&Failure{Code: placeCodes[fault], Offset: f.Offset,
			Reason: "the sink of an RDMA Read: " + fault.Mistake()}, s)
		return
	}
	q.drain.drained(s.PayloadLen())
	q.countOdd(s, s.PayloadLen() > 0 && s.TO-read.SinkTO != uint64(got))
	if _, done := q.orq.Advance(s); done {
		q.readDone(read.ID)
	} else if q.orq.InOrder(s) {
		q.sequelOf(s)
	}
}

func (q *Machine) placeResponse(f *mpa.FPDU, read *rdmap.Read, s *ddp.Segment) memory.Fault {
	if s.PayloadLen() == 0 { // as a hidden Read's always is
		return memory.None
	}
	sink, off := q.sink(read.ID), s.TO-read.SinkTO
	if q.inPlace {
		return q.cfg.Memory.LocalCheck(sink.Region, &sink.Term, sink.Offset+int(off), s.PayloadLen(), true)
	}
	p := payload(f, s)
	if early := q.overlapped(q.orq.Early(), off, p.Len()); early != nil {
		return placeAround(early, off, p, func(off uint64, p layout.Content) memory.Fault {
			return q.cfg.Memory.LocalPlace(sink.Region, &sink.Term, sink.Offset+int(off), p)
		})
	}
	return q.cfg.Memory.LocalPlace(sink.Region, &sink.Term, sink.Offset+int(off), p)
}

// readDone completes a Read, if that was the last of its responses: it has been delivered.
func (q *Machine) readDone(id uint64) {
	switch {
	case id == hiddenRead:
		return
	case id&confirmRead != 0:
		q.confirm.asking = false
		q.confirmed(id &^ confirmRead)
		return
	}
	e, element := q.sinkOf(id)
	if e.nextSink(element+1) < e.SGL.Len() {
		return
	}
	q.confirm.known = max(q.confirm.known, sinkPos(id))
	e.phase = phaseDone
	if fault := q.invalidateSink(e); fault != memory.None {
		e.status = StatusInvalidateFailed
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic,
			Reason: "the sink of an RDMA Read, local invalidation: " + fault.String()}, nil)
	}
	q.retire()
}

// invalidateSink does what a Read with InvalidateLocal asks for: after the
// response is delivered and before the Read completes (RDMA verbs 8).
func (q *Machine) invalidateSink(e *sendEntry) memory.Fault {
	if !e.InvalidateLocal {
		return memory.None
	}
	if e.SGL.Len() > 0 {
		return q.cfg.Memory.LocalInvalidate(e.SGL.Elements()[0].Region)
	}
	return q.cfg.Memory.LocalInvalidate(e.Target)
}

// onReadRequest queues a peer's Read. It is checked as a whole now, and again
// as each segment of its response is made.
func (q *Machine) onReadRequest(f *mpa.FPDU, s *ddp.Segment) {
	if !q.requested(f, s, rdmap.ReadRequestLen) {
		return
	}
	r, _ := rdmap.ParseReadRequest(s.Payload) // CheckSegment has seen to its length
	if fault := q.cfg.Memory.CheckRead(r.SrcSTag, r.SrcTO, r.Size); fault != memory.None {
		q.fail(&Failure{Code: readCodes[fault], Offset: f.Offset,
			Reason: accessReason(fault, r.Size, r.SrcTO, r.SrcSTag)}, s)
		return
	}
	q.admit(s, r.Size > 0 || q.stats.RecvFPDUs > 1) // otherwise it may be a Ready-to-Receive indication
}

// requested reports whether there is room for the request in a segment of queue 1, whose header
// has n bytes.
func (q *Machine) requested(f *mpa.FPDU, s *ddp.Segment, n uint64) bool {
	if err := q.irrq.Check(s); err != nil {
		q.segmentError(f, s, err)
		return false
	}
	if err := q.queues[rdmap.QNRead].Check(s, 1, n); err != nil {
		q.segmentError(f, s, rdmap.FromDDP(err, rdmap.OpcodeOf(&s.Header)))
		return false
	}
	return true
}

// admit queues a request that has passed its checks. asks says that the consumer of the peer
// asks for something.
func (q *Machine) admit(s *ddp.Segment, asks bool) {
	q.queues[rdmap.QNRead].Place(s)
	// Our FIN, sent or soon to be, tells the peer that this Read will not be answered. RFC 5040, section 6.2
	// leaves it to the ULP to end its operations before a graceful termination; what
	// else the peer has sent is still good.
	if q.finished || !q.drain.takesReads() {
		q.stats.Odd.Late++
		return
	}
	_ = q.irrq.Push(s) // Check has found room for it
	if asks {
		q.readAt = q.inputAt
	}
	q.drain.asked()
}

// beginReadResponse begins to answer the oldest request, if it is a Read Request.
//
// RFC 5040, section 5.5: Read Responses are submitted in the order of the
// requests. [P43]
func (q *Machine) beginReadResponse(g *Gather) bool {
	in := q.irrq.Front()
	if in == nil {
		return false
	}
	h := q.response.Begin(in.Size)
	q.setHeader(h, rdmap.OpReadResponse)
	h.STag, h.TO = in.SinkSTag, in.SinkTO
	return q.respond(g)
}

// respond builds the next segment of the response to the oldest request.
func (q *Machine) respond(g *Gather) bool {
	var h ddp.Header
	n, ok := q.nextOf(&q.response, g, &h)
	if !ok {
		return false
	}
	req := q.irrq.Front()
	d := q.beginFPDU(g, &h, n)
	if fault := q.cfg.Memory.Load(g, n, req.SrcSTag, req.SrcTO); fault != memory.None {
		q.dropFPDU(g, d)
		q.failAnswer(rdmap.OpReadRequest, readCodes[fault], accessReason(fault, req.Size, req.SrcTO, req.SrcSTag))
		return true
	}
	req.Advance(uint32(n))
	q.busy = sourceRead
	g.drain = g.drain || q.drain.owesReads()
	q.endFPDU(g, d, &h, n)
	if h.Last {
		q.answered()
	} else {
		q.respondMiddle(g, req)
	}
	return true
}

// answered moves on from the oldest request.
func (q *Machine) answered() {
	q.irrq.Pop()
	q.drain.answered()
	q.busy, q.turn = sourceNone, sourceSend
}

// failAnswer ends the connection because the oldest request, which was accepted, can no
// longer be served. The Terminate carries what is left of a Read.
func (q *Machine) failAnswer(op rdmap.Opcode, code rdmap.Code, reason string) {
	q.busy = sourceNone
	f := &Failure{Code: code, Op: op, HasOp: true, Offset: q.txOffset(), Reason: reason}
	t := q.irrq.Terminate(f.Code)
	q.terminate(f, &t)
}
