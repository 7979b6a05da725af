package peersim

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// step takes one segment.
func (s *Session) step() error {
	seg, err := s.next()
	if err != nil {
		return err
	}
	s.maySend = true
	return s.dispatch(&seg)
}

// dispatch judges a segment and does what its opcode asks for.
func (s *Session) dispatch(seg *ddp.Segment) error {
	if err := s.check(seg); err != nil {
		return err
	}
	switch op := rdmap.OpcodeOf(&seg.Header); op {
	case rdmap.OpSend:
		return s.takeSend(seg)
	case rdmap.OpWrite:
		return s.takeWrite(seg)
	case rdmap.OpReadRequest:
		return s.takeRead(seg)
	case rdmap.OpReadResponse:
		return s.takeResponse(seg)
	case rdmap.OpTerminate:
		t, err := rdmap.ParseTerminate(seg.Payload)
		if err != nil {
			return err
		}
		return &Terminated{t.Clone()}
	default:
		return s.refuse(rdmap.CodeUnexpectedOpcode, "%v", op)
	}
}

// check judges what every segment must have right.
func (s *Session) check(seg *ddp.Segment) error {
	if err := ddp.CheckVersion(&seg.Header, version); err != nil {
		return s.refuse(rdmap.Code(err.Code), "%v", err)
	}
	if err := rdmap.CheckSegment(seg, version); err != nil {
		return s.refuse(err.Code, "%v", err)
	}
	return nil
}

// takeSend puts a Send together.
func (s *Session) takeSend(seg *ddp.Segment) error {
	switch {
	case seg.MSN != s.msn.recv:
		return s.refuse(rdmap.CodeDDPInvalidMSNRange, "a Send with MSN %d, not %d", seg.MSN, s.msn.recv)
	case int(seg.MO) != len(s.part):
		return s.refuse(rdmap.CodeDDPInvalidMO, "a Send with MO %d, not %d", seg.MO, len(s.part))
	}
	s.part = append(s.part, seg.Payload...)
	if seg.Last {
		s.inbox = append(s.inbox, s.part)
		s.part = nil
		s.msn.recv++
	}
	return nil
}

// takeWrite takes zero-length Writes. There is no memory here to be written to.
func (s *Session) takeWrite(seg *ddp.Segment) error {
	if len(seg.Payload) > 0 {
		return s.refuse(rdmap.CodeDDPInvalidSTag, "a Write of %d octets", len(seg.Payload))
	}
	return nil
}

// takeRead takes zero-length Reads, as many as the IRD allows.
func (s *Session) takeRead(seg *ddp.Segment) error {
	r, err := rdmap.ParseReadRequest(seg.Payload)
	switch {
	case err != nil:
		return err
	case seg.MSN != s.msn.read:
		return s.refuse(rdmap.CodeDDPInvalidMSNRange, "a Read Request with MSN %d, not %d", seg.MSN, s.msn.read)
	case len(s.held) >= int(s.peer.ird):
		return s.refuse(rdmap.CodeDDPInvalidMSNRange, "Read Request %d, and IRD %d", len(s.held)+1, s.peer.ird)
	case r.Size > 0:
		return s.refuse(rdmap.CodeInvalidSTag, "a Read of %d octets", r.Size)
	}
	s.msn.read++
	s.held = append(s.held, r)
	if s.HoldReads {
		return nil
	}
	return s.AnswerReads()
}

// takeResponse takes the answer to a Read of ours.
func (s *Session) takeResponse(seg *ddp.Segment) error {
	if s.reads == 0 || len(seg.Payload) > 0 {
		return s.refuse(rdmap.CodeUnexpectedOpcode, "a Read Response of %d octets, unasked", len(seg.Payload))
	}
	s.reads--
	return nil
}

// rtrSTag names nothing.
const rtrSTag = 1

// sendRTR sends an RTR indication, and waits for the answer if it is a Read.
func (s *Session) sendRTR(kind mpa.RTR) error {
	if kind == mpa.RTRRead {
		if err := s.Read(1); err != nil {
			return s.peer.lost(err, "the answer to its Read")
		}
		return nil
	}
	h := rdmap.OpWrite.Header(version)
	h.STag = rtrSTag
	if kind == mpa.RTRSend {
		h = rdmap.OpSend.Header(version)
		h.MSN = s.msn.send
		s.msn.send++
	}
	h.Last = true
	if err := s.write(s.tx.Append(nil, h.Append(nil))); err != nil {
		return s.peer.lost(err, "the peer to take the RTR indication")
	}
	return nil
}

// readRequest frames a zero-length Read.
func (s *Session) readRequest() []byte {
	h := rdmap.OpReadRequest.Header(version)
	h.Last, h.MSN = true, s.msn.ask
	s.msn.ask++
	s.reads++
	r := rdmap.ReadRequest{SrcSTag: rtrSTag}
	return s.tx.Append(nil, h.Append(nil), r.Append(nil))
}

func (s *Session) awaitResponses() error {
	for s.reads > 0 {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// awaitRTR takes the Initiator's first FPDU, which is to be one of the kinds named.
func (s *Session) awaitRTR(named mpa.RTR) error {
	seg, err := s.next()
	if err != nil {
		return s.peer.lost(err, "the RTR indication")
	}
	kind, stag := indication(&seg)
	switch {
	case kind&named == 0 && !s.peer.AnyFirst:
		return s.peer.refuse(Resets, "a first FPDU with %v where the RTR indication was to be %v", seg.Header, named)
	case kind != 0 && kind != mpa.RTRSend && stag == 0:
		if err := s.peer.refuse(s.peer.STag0, "STag 0 in the RTR indication"); err != nil {
			return err
		}
	}
	s.RTR, s.maySend = kind, true
	return s.takeRTR(&seg, kind&named)
}

// indication returns the kind of RTR indication that a segment is, if it is one, and
// the STag in it.
func indication(seg *ddp.Segment) (kind mpa.RTR, stag uint32) {
	switch rdmap.OpcodeOf(&seg.Header) {
	case rdmap.OpSend:
		if len(seg.Payload) == 0 && seg.Last {
			return mpa.RTRSend, 0
		}
	case rdmap.OpWrite:
		if len(seg.Payload) == 0 {
			return mpa.RTRWrite, seg.STag
		}
	case rdmap.OpReadRequest:
		if r, err := rdmap.ParseReadRequest(seg.Payload); err == nil && r.Size == 0 {
			return mpa.RTRRead, r.SrcSTag
		}
	}
	return 0, 0
}

// takeRTR does with the first FPDU what is to be done with its kind: a Send as RTR
// indication is not the consumer's.
func (s *Session) takeRTR(seg *ddp.Segment, kind mpa.RTR) error {
	if kind == mpa.RTRSend {
		s.msn.recv++
		return s.check(seg)
	}
	return s.dispatch(seg)
}
