package rdmap

import "github.com/goiwarp/iwarp/ddp"

// ZeroLength returns the opcode of a segment, and whether the segment is a whole
// message that moves no data: its last and first segment, without payload, or, for a
// Read Request, with an RDMA Read Message Size of zero. STag, TO and MSN are not
// looked at.
//
// RFC 5040, sections 5.1 to 5.3, allows Writes, Reads and Sends of zero length. RFC
// 6581 opens a connection with one of them: see mpa.RTROf.
func ZeroLength(s *ddp.Segment) (op Opcode, zeroLength bool) {
	op = OpcodeOf(&s.Header)
	info := op.info()
	switch {
	case info == &unknown.Info || !s.Last || s.Tagged != info.Tagged:
		return op, false
	case !s.Tagged && (s.QN != info.QN || s.MO != 0):
		return op, false
	case op == OpReadRequest:
		r, err := ParseReadRequest(s.Payload)
		return op, err == nil && r.Size == 0 && s.PayloadLen() == ReadRequestLen
	}
	return op, s.PayloadLen() == 0
}
