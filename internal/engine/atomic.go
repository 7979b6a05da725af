package engine

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// Atomic Operations, RFC 7306. Their requests go through queue 1 and are bounded by ORD and
// IRD together with RDMA Reads; their responses have a queue of their own, 3, with its own
// MSNs. Each is answered in its turn among the Reads, and carried out when it is answered:
// what was asked for before it is in the response that went before.

// beginAtomic sends the Atomic Request of a Send Queue entry.
func (q *Machine) beginAtomic(g *Gather, e *sendEntry) bool {
	if moved, ok := q.mayRequest(e); !ok {
		return moved
	}
	if fault := e.checkResult(q.cfg.Memory); fault != memory.None {
		q.sq.next++
		q.workError(e, localStatus(fault), "the memory for the result of an Atomic Operation: "+fault.String())
		return true
	}
	e.phase, e.msn = phaseReading, q.readMSN
	q.asks()
	q.requestAtomic(g, e)
	g.drain = true
	q.sq.next++
	q.turn = sourceRead
	return true
}

// checkResult judges the memory that the result is for, if there is any.
func (e *sendEntry) checkResult(d memory.Domain) memory.Fault {
	if e.SGL.Len() == 0 {
		return memory.None
	}
	s := &e.SGL.Elements()[0]
	return d.LocalCheck(s.Region, &s.Term, s.Offset, s.Length, true)
}

// requestAtomic builds the request. Its Request Identifier is the MSN that its response will
// have: that counts the Atomic Operations of the stream.
//
// RFC 7306, section 5.2.1: "The Requester MUST pass to the DDP layer Atomic Operation Request
// Messages in the order they were submitted by the ULP." [A21]
func (q *Machine) requestAtomic(g *Gather, e *sendEntry) {
	h := q.header(rdmap.OpAtomicRequest)
	h.Last, h.MSN = true, q.readMSN
	q.readMSN++
	r := e.Atomic.request(e.Op)
	r.ID, r.STag, r.TO = q.atomicsAsked+ddp.FirstMSN, e.RemoteSTag, e.RemoteTO
	q.atomicsAsked++
	q.orq.Push(rdmap.Read{Response: rdmap.OpAtomicResponse, Request: r.ID, ID: q.sq.next})
	q.frameOwn(g, &h, r.Append(g.scratch[:0]))
}

// onAtomicResponse completes the oldest request.
func (q *Machine) onAtomicResponse(f *mpa.FPDU, s *ddp.Segment) {
	// RFC 7306, section 5.2.2: "The Requester MUST ensure that a sufficient number of Untagged
	// Buffers are available on the RDMA Atomic Response Queue": there is one for each request
	// outstanding, which CheckAnswer looks for. [A24]
	queue := &q.queues[rdmap.QNAtomic]
	if err := queue.Check(s, 1, rdmap.AtomicResponseLen); err != nil {
		q.segmentError(f, s, rdmap.FromDDP(err, rdmap.OpAtomicResponse))
		return
	}
	resp, _ := rdmap.ParseAtomicResponse(s.Payload) // CheckSegment has seen to its length
	if err := q.orq.CheckAnswer(rdmap.OpAtomicResponse, resp.ID); err != nil {
		q.segmentError(f, s, err)
		return
	}
	queue.Place(s)
	read, _ := q.orq.Pop()
	q.drain.drained(s.PayloadLen())
	q.confirm.known = max(q.confirm.known, read.ID)
	q.atomicDone(q.sq.At(read.ID), f.Offset, resp.Value)
}

// atomicDone completes an Atomic Operation. RFC 7306, section 5.4: it "MUST NOT be Completed at
// the Requester until the DDP layer Delivers the associated incoming Atomic Operation Response
// Message." [A25]
func (q *Machine) atomicDone(e *sendEntry, at uint64, value uint64) {
	if fault := e.placeResult(q.cfg.Memory, value); fault != memory.None {
		e.status = localStatus(fault)
		q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Offset: at,
			Reason: "the memory for the result of an Atomic Operation: " + fault.String() +
				"; keep it registered until the operation is complete"}, nil)
		return
	}
	e.phase, e.Atomic.Data, e.length = phaseDone, value, atomicLen
	q.retire()
}

// atomicLen is how many bytes an Atomic Operation works on, and its result has.
const atomicLen = 8

// placeResult has the result as an integer of the machine's byte order, as it is in the peer's
// memory in that of the peer's (RFC 7306, section 5.1.1: it "is converted from the endian
// format of the target memory for return").
func (e *sendEntry) placeResult(d memory.Domain, value uint64) memory.Fault {
	if e.SGL.Len() == 0 {
		return memory.None
	}
	var data [atomicLen]byte
	binary.NativeEndian.PutUint64(data[:], value)
	s := &e.SGL.Elements()[0]
	return d.LocalPlace(s.Region, &s.Term, s.Offset, layout.Plain(data[:]))
}

// onAtomicRequest queues a peer's Atomic Operation. It is checked now, and again when it is
// carried out.
//
// RFC 7306, section 5.4: it "MUST NOT start processing at the Responder until [it has] been
// Delivered to RDMAP by DDP": this is called in the turn of its segment. [A28]
func (q *Machine) onAtomicRequest(f *mpa.FPDU, s *ddp.Segment) {
	if !q.requested(f, s, rdmap.AtomicRequestLen) {
		return
	}
	r, _ := rdmap.ParseAtomicRequest(s.Payload) // CheckSegment has seen to its length
	// RFC 7306, section 5.2.1: "an error MUST be surfaced in response to delivery [...] of an
	// Atomic Operation Request Message with an Atomic Operation Code that the RNIC does not
	// support." No code is given: it is one of the operations that section 1.1 has answered by
	// "Unexpected OpCode". [A20]
	if !r.Op.Known() {
		q.segmentError(f, s, &rdmap.Error{Code: rdmap.CodeUnexpectedOpcode, Op: rdmap.OpAtomicRequest, Field: "AOpCode",
			Reason: r.Op.String() + " is not known"})
		return
	}
	if fault := q.cfg.Memory.CheckAtomic(r.STag, r.TO); fault != memory.None {
		q.fail(&Failure{Code: atomicCodes[fault], Offset: f.Offset,
			Reason: accessReason(fault, atomicLen, r.TO, r.STag)}, s)
		return
	}
	q.admit(s, true)
}

// answerAtomic carries out the oldest request and builds its response.
//
// RFC 7306, section 5.4: the requests "MUST be processed in the order they were delivered by
// the DDP layer on the Responder", and the responses "MUST be submitted to the DDP layer on the
// Responder in the order the Atomic Operation Request Messages were Delivered by DDP." [A22]
func (q *Machine) answerAtomic(g *Gather, header []byte) bool {
	r, _ := rdmap.ParseAtomicRequest(header) // onAtomicRequest has seen to its length
	old, fault := q.cfg.Memory.Atomic(r.STag, r.TO, r.Apply)
	if fault != memory.None {
		q.failAnswer(rdmap.OpAtomicRequest, atomicCodes[fault], accessReason(fault, atomicLen, r.TO, r.STag))
		return true
	}
	h := q.header(rdmap.OpAtomicResponse)
	h.Last, h.MSN = true, q.atomicsDone+ddp.FirstMSN
	q.atomicsDone++
	resp := rdmap.AtomicResponse{ID: r.ID, Value: old}
	q.frameOwn(g, &h, resp.Append(g.scratch[:0]))
	g.drain = g.drain || q.drain.owesReads()
	q.answered()
	return true
}
