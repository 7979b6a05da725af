package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// onWrite places a segment of an RDMA Write. It is never delivered: nothing
// tells the consumer (RFC 5040, section 5.1).
func (q *Machine) onWrite(f *mpa.FPDU, s *ddp.Segment) {
	if fault := q.placeWrite(f, s); fault != memory.None {
		q.fail(&Failure{Code: placeCodes[fault], Offset: f.Offset,
			Reason: accessReason(fault, uint32(s.PayloadLen()), s.TO, s.STag)}, s)
		return
	}
	q.countWritten(s)
	q.partial[partialWrite] = !s.Last
	q.drain.drained(s.PayloadLen())
	if s.PayloadLen() == 0 {
		q.countEmptyWrite()
	}
	q.sequelOf(s)
}

func (q *Machine) placeWrite(f *mpa.FPDU, s *ddp.Segment) memory.Fault {
	if q.inPlace {
		return q.cfg.Memory.CheckWrite(s.STag, s.TO, uint64(s.PayloadLen()))
	}
	return q.cfg.Memory.Place(s.STag, s.TO, payload(f, s))
}
