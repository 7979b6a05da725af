package engine

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// hiddenRead is the position of a Read that no consumer asked for: the RTR.
const hiddenRead = ^uint64(0)

// beginRead sends the Read Request of a Send Queue entry. With ORD Reads
// outstanding the whole queue stalls here, so that the order is kept (RDMA
// verbs 6.5).
func (q *QP) beginRead(g *Gather, e *sendEntry) bool {
	switch {
	case q.ORD == 0:
		q.sq.next++
		q.workError(e, StatusNoReadResources, "RDMA Read with an ORD of zero")
		return true
	case q.peerClosed:
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Reason: "the peer has closed its half, an RDMA Read cannot be answered"}, nil)
		return true
	case q.orq.Len() >= q.ORD, !fits(g, rdmap.ReadRequestLen, 1):
		return false
	}
	r, fault := e.readRequest(q.cfg.Memory.PD)
	if fault != memory.None {
		q.sq.next++
		q.workError(e, localStatus(fault), "the sink of an RDMA Read: "+fault.String())
		return true
	}
	e.phase, e.msn = phaseReading, q.readMSN
	q.requestRead(g, r, q.sq.next)
	q.sq.next++
	q.turn = sourceRead
	return true
}

// readRequest names the sink by the STag of its region. Of the region, local
// write is asked, here and again when the response arrives; the response is
// held against the request octet by octet, so the peer gains no right to it.
func (e *sendEntry) readRequest(pd uint32) (rdmap.ReadRequest, memory.Fault) {
	r := rdmap.ReadRequest{SinkSTag: rtrSTag, Size: e.length, SrcSTag: e.RemoteSTag, SrcTO: e.RemoteTO}
	if e.length == 0 {
		return r, memory.None
	}
	s := &e.SGL[0]
	if _, f := s.Region.Local(pd, s.Offset, s.Length, true); f != memory.None {
		return r, f
	}
	r.SinkSTag, r.SinkTO = s.Region.STag(), s.Region.Base()+uint64(s.Offset)
	return r, memory.None
}

func (q *QP) requestRead(g *Gather, r rdmap.ReadRequest, pos uint64) {
	h := q.header(rdmap.OpReadRequest)
	h.Last, h.MSN = true, q.readMSN
	q.readMSN++
	q.orq.Push(rdmap.Read{SinkSTag: r.SinkSTag, SinkTO: r.SinkTO, Size: r.Size, ID: pos})
	body := r.Append(q.scratch[:0])
	q.onePiece[0] = body
	q.frame(g, &h, q.onePiece[:], len(body))
}

// onReadResponse places a segment of the response to the oldest Read.
func (q *QP) onReadResponse(f *mpa.FPDU, s *ddp.Segment) {
	if err := q.orq.Check(s); err != nil {
		q.segmentError(f, s, err)
		return
	}
	read, _, _ := q.orq.Front()
	if fault := q.placeResponse(&read, s); fault != memory.None {
		q.sq.at(read.ID).status = localStatus(fault)
		q.fail(&Failure{Code: placeCodes[fault], Offset: f.Offset, Reason: "the sink of an RDMA Read: " + fault.String()}, s)
		return
	}
	if _, done := q.orq.Advance(s); done {
		q.readDone(read.ID)
	}
}

func (q *QP) placeResponse(read *rdmap.Read, s *ddp.Segment) memory.Fault {
	if len(s.Payload) == 0 { // as a hidden Read's always is
		return memory.None
	}
	sink := &q.sq.at(read.ID).SGL[0]
	return sink.Region.LocalPlace(q.cfg.Memory.PD, sink.Offset+int(s.TO-read.SinkTO), s.Payload)
}

// readDone completes a Read: its response has been delivered.
func (q *QP) readDone(pos uint64) {
	if pos == hiddenRead {
		return
	}
	e := q.sq.at(pos)
	e.phase = phaseDone
	if fault := q.invalidateSink(e); fault != memory.None {
		e.status = StatusInvalidateFailed
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Reason: "the sink of an RDMA Read, local invalidation: " + fault.String()}, nil)
	}
	q.retire()
}

// invalidateSink does what a Read with InvalidateLocal asks for: after the
// response is delivered and before the Read completes (RDMA verbs 8).
func (q *QP) invalidateSink(e *sendEntry) memory.Fault {
	if !e.InvalidateLocal {
		return memory.None
	}
	sink := e.Target
	if e.NumSGE > 0 {
		sink = e.SGL[0].Region
	}
	return sink.LocalInvalidate(q.cfg.Memory.PD)
}

// onReadRequest queues a peer's Read. It is checked as a whole now, and again
// as each segment of its response is made.
func (q *QP) onReadRequest(f *mpa.FPDU, s *ddp.Segment) {
	if q.finished {
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Offset: f.Offset, Reason: "our half of the connection is closed, the Read cannot be answered"}, s)
		return
	}
	if err := q.irrq.Check(s); err != nil {
		q.segmentError(f, s, err)
		return
	}
	queue := &q.queues[rdmap.QNRead]
	if err := queue.Check(s, 1, rdmap.ReadRequestLen); err != nil {
		q.segmentError(f, s, rdmap.FromDDP(err, rdmap.OpReadRequest))
		return
	}
	r, _ := rdmap.ParseReadRequest(s.Payload) // CheckSegment has seen to its length
	if fault := q.cfg.Memory.CheckRead(r.SrcSTag, r.SrcTO, r.Size); fault != memory.None {
		q.fail(&Failure{Code: readCodes[fault], Offset: f.Offset, Reason: readReason(&r, fault)}, s)
		return
	}
	queue.Place(s)
	q.irrq.PushSegment(s)
}

func readReason(r *rdmap.ReadRequest, f memory.Fault) string {
	return fmt.Sprintf("%v: %d octets at %#x of STag %#08x", f, r.Size, r.SrcTO, r.SrcSTag)
}

// beginResponse begins to answer the oldest Read Request.
//
// RFC 5040, Section 5.5: Read Responses are submitted in the order of the
// requests. [P43]
func (q *QP) beginResponse(g *Gather) bool {
	in := q.irrq.Front()
	if in == nil {
		return false
	}
	h := q.header(rdmap.OpReadResponse)
	h.STag, h.TO = in.SinkSTag, in.SinkTO
	q.response = ddp.NewSegmenter(h, in.Size)
	return q.respond(g)
}

// respond builds the next segment of the response to the oldest request. Its payload is
// copied while the region's lock is held: the memory may change or be revoked
// at any time, and a CRC over octets that change under way would end the
// connection for no fault of the peer's.
func (q *QP) respond(g *Gather) bool {
	seg := q.response
	h, n, ok := seg.Next(q.MULPDU)
	copies := 1
	if q.MarkersSend {
		copies = 2
	}
	if !ok || !fits(g, n, copies) {
		return false
	}
	req := q.irrq.Front()
	p := q.responseRoom(g, n)
	if fault := q.cfg.Memory.Load(p, req.SrcSTag, req.SrcTO); fault != memory.None {
		q.failResponse(req, fault)
		return true
	}
	req.Advance(uint32(n))
	q.response, q.busy = seg, sourceRead
	q.frameResponse(g, &h, p)
	if h.Last {
		q.irrq.Pop()
		q.busy, q.turn = sourceNone, sourceSend
	}
	return true
}

// responseRoom is where the payload is loaded to: its final place in the
// arena or, when markers will be woven in, the arena's end.
func (q *QP) responseRoom(g *Gather, n int) []byte {
	if q.MarkersSend {
		return g.arena[cap(g.arena)-n : cap(g.arena)]
	}
	at := len(g.arena) + 2 + ddp.TaggedHeaderLen
	return g.arena[at : at+n]
}

func (q *QP) frameResponse(g *Gather, h *ddp.Header, p []byte) {
	if q.MarkersSend {
		q.onePiece[0] = p
		q.frame(g, h, q.onePiece[:], len(p))
		return
	}
	offset := q.tx.Offset()
	g.arena = q.tx.Begin(g.arena, h.Len()+len(p))
	start := len(g.arena)
	g.arena = h.Append(g.arena)
	g.arena = g.arena[:len(g.arena)+len(p)] // loaded already
	q.tx.Payload(g.arena[start:])
	g.arena = q.tx.End(g.arena)
	g.total += int(q.tx.Offset() - offset)
	q.traceSent(offset, h, len(p))
}

// failResponse ends the connection because a Read that was accepted can no
// longer be served. The Terminate carries what is left of the request.
func (q *QP) failResponse(req *rdmap.ReadRequest, fault memory.Fault) {
	q.busy = sourceNone
	f := &Failure{Code: readCodes[fault], Op: rdmap.OpReadRequest, HasOp: true, Offset: q.tx.Offset(), Reason: readReason(req, fault)}
	t := q.irrq.Terminate(f.Code)
	q.terminate(f, &t)
}
