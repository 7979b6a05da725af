package engine

import (
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Immediate Data, RFC 7306, section 6: a message of 8 bytes that goes through queue 0 as a
// Send does and consumes a receive, whose memory stays as it is: the bytes are handed up
// in the completion. After an RDMA Write it is what other transports call a Write with
// Immediate, of which the RFC has no other form.

// sendImmediate builds the Immediate Data message of the entry that is next in the queue: all of
// an OpImmediate, and what comes after the Write of an OpWriteImm.
//
// RFC 7306, section 6.3: "The Local Peer MUST issue Immediate Data and Immediate Data with SE
// Messages in the order they were submitted by the ULP." [A34]
func (q *Machine) sendImmediate(g *Gather, e *sendEntry) bool {
	op := rdmap.OpImmediateData
	if e.Solicited {
		op = rdmap.OpImmediateDataSE
	}
	h := q.header(op)
	h.Last, h.MSN = true, q.sendMSN
	q.frameOwn(g, &h, rdmap.AppendImmediateData(g.scratch[:0], e.Immediate))
	g.drain = true
	q.built(e)
	return true
}

// onImmediate completes the next receive.
//
// RFC 7306, section 6.3: it "MUST consume one Untagged Buffer", and is "Delivered to the Remote
// Peer's ULP in the order" of sending. [A33] [A35]
func (q *Machine) onImmediate(f *mpa.FPDU, s *ddp.Segment) {
	queue := &q.queues[rdmap.QNSend]
	buffers := q.ensureReceive(s)
	// The bytes are not for the receive's memory, which may be shorter.
	if err := queue.Check(s, buffers, rdmap.ImmediateDataLen); err != nil {
		e := rdmap.FromDDP(err, rdmap.OpcodeOf(&s.Header))
		if e.Code == rdmap.CodeDDPInvalidMSNNoBuffer {
			e.Reason += ": " + q.recv.Refusal()
		}
		q.segmentError(f, s, e)
		return
	}
	if q.partial[partialSend] {
		q.segmentError(f, s, &rdmap.Error{Code: rdmap.CodeDDPInvalidMO, Op: rdmap.OpcodeOf(&s.Header), Field: "MO",
			Reason: fmt.Sprintf("message %d is a Send, of which a part has come", s.MSN)})
		return
	}
	queue.Place(s)
	value, _ := rdmap.ParseImmediateData(s.Payload) // CheckSegment has seen to its length
	q.partial[partialSend] = false
	q.drain.progress()
	c := q.completeReceive(StatusSuccess)
	c.Immediate, c.HasImmediate, c.Written, c.Solicited = value, true, q.takeWritten(),
		rdmap.OpcodeOf(&s.Header).Solicited()
}

// countWritten counts the bytes of an RDMA Write of the peer's.
func (q *Machine) countWritten(s *ddp.Segment) {
	if !q.partial[partialWrite] {
		q.written = 0
	}
	q.written += uint64(s.PayloadLen())
	q.writtenTo = q.writtenTo || s.PayloadLen() > 0
}

// takeWritten returns how many bytes the RDMA Write had that the peer has sent before this
// message, of which no other has told.
func (q *Machine) takeWritten() (n uint32) {
	if q.partial[partialWrite] { // and it is not over
		return 0
	}
	n = uint32(min(q.written, math.MaxUint32))
	q.written = 0
	return n
}

// refuseExtension ends work that the stream's version has not. RFC 7306, section 4.1: "All RDMA
// Messages defined in this specification MUST have: The RDMA Version (RV) field: 01b." [A02]
func (q *Machine) refuseExtension(e *sendEntry) bool {
	q.sq.next++
	q.workError(e, StatusUnsupported, ErrNoExtensions.Error())
	return true
}
