package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Which function begins an operation, which takes a message, and which answers a request.

// beginEntry begins the next request of the Send Queue, if there is one that may begin.
func (q *Machine) beginEntry(g *Gather) bool {
	if q.sq.next == q.sq.Tail() {
		return false
	}
	e := q.sq.At(q.sq.next)
	if e.Fence && q.fences(e) {
		return false
	}
	if e.Op.Extension() && q.RDMAPVersion == 0 {
		return q.refuseExtension(e)
	}
	switch e.Op {
	case OpFetchAdd, OpCompareSwap:
		return q.beginAtomic(g, e)
	case OpImmediate:
		return q.sendImmediate(g, e)
	case OpLocalInvalidate, OpBind, OpFastRegister:
		return q.carryOut(e)
	case OpRead:
		return q.beginRead(g, e)
	}
	if status, err := q.checkPrefix(&e.SendWork, uint64(e.length)); err != nil {
		q.sq.next++
		q.workError(e, status, err.Error())
		return true
	}
	// The message begins with its first segment, for which there may be no room now.
	q.beginSegments(e)
	return q.sendSegment(g)
}

// dispatch takes a segment that has passed the checks of DDP and RDMAP.
func (q *Machine) dispatch(f *mpa.FPDU, s *ddp.Segment) {
	if q.awaits(f, s) {
		return
	}
	switch op := rdmap.OpcodeOf(&s.Header); op {
	case rdmap.OpWrite:
		q.onWrite(f, s)
	case rdmap.OpReadRequest:
		q.onReadRequest(f, s)
	case rdmap.OpReadResponse:
		q.onReadResponse(f, s)
	case rdmap.OpTerminate:
		q.onTerminate(s)
	case rdmap.OpAtomicRequest:
		q.onAtomicRequest(f, s)
	case rdmap.OpAtomicResponse:
		q.onAtomicResponse(f, s)
	case rdmap.OpImmediateData, rdmap.OpImmediateDataSE:
		q.onImmediate(f, s)
	default: // CheckSegment lets nothing else but the four Sends pass
		q.onSend(f, s)
	}
}

// beginResponse begins to answer the oldest request of the peer, if there is one.
func (q *Machine) beginResponse(g *Gather) bool {
	switch op, header := q.irrq.FrontOther(); op {
	case rdmap.OpAtomicRequest:
		return q.answerAtomic(g, header)
	}
	return q.beginReadResponse(g)
}
