package peersim

import (
	"bytes"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/script"
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
		t, err := rdmap.ParseTerminate(bytes.Clone(seg.Payload)) // it is kept
		if err != nil {
			return err
		}
		return &Terminated{t}
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

// takeSend reassembles a Send.
func (s *Session) takeSend(seg *ddp.Segment) error {
	switch {
	case seg.MSN != s.msn.send:
		return s.refuse(rdmap.CodeDDPInvalidMSNRange, "a Send with MSN %d, not %d", seg.MSN, s.msn.send)
	case int(seg.MO) != len(s.part):
		return s.refuse(rdmap.CodeDDPInvalidMO, "a Send with MO %d, not %d", seg.MO, len(s.part))
	}
	s.part = append(s.part, seg.Payload...)
	if seg.Last {
		s.inbox = append(s.inbox, s.part)
		s.part = nil
		s.msn.send++
	}
	return nil
}

// takeWrite takes zero-length Writes. The peer has no memory to be written to.
func (s *Session) takeWrite(seg *ddp.Segment) error {
	if len(seg.Payload) > 0 {
		return s.refuse(rdmap.CodeDDPInvalidSTag, "a Write of %d bytes", len(seg.Payload))
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
		return s.refuse(rdmap.CodeInvalidSTag, "a Read of %d bytes", r.Size)
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
		return s.refuse(rdmap.CodeUnexpectedOpcode, "a Read Response of %d bytes, unasked", len(seg.Payload))
	}
	s.reads--
	return nil
}

// sendRTR sends an RTR indication, and waits for the answer if it is a Read.
func (s *Session) sendRTR(kind mpa.RTR) error {
	if kind == mpa.RTRRead {
		if err := s.Read(1); err != nil {
			return s.peer.lost(err, "the answer to its Read")
		}
		return nil
	}
	ready, _ := s.peer.Ready(kind)
	if err := s.peer.Send(ready); err != nil {
		return s.peer.lost(err, "the peer to take the RTR indication")
	}
	return nil
}

// awaitRTR takes the Initiator's first FPDU, which is to be one of the kinds named.
func (s *Session) awaitRTR(named mpa.RTR) error {
	seg, err := s.next()
	if err != nil {
		return s.peer.lost(err, "the RTR indication")
	}
	kind := mpa.RTROf(rdmap.ZeroLength(&seg))
	switch {
	case kind&named == 0 && !s.peer.AnyFirst:
		return s.peer.refuse(peers.Resets, "a first FPDU with %v where the RTR indication was to be %v",
			seg.Header, named)
	case kind != 0 && stagOf(&seg) == 0:
		if err := s.peer.refuse(s.peer.STag0, "STag 0 in the RTR indication"); err != nil {
			return err
		}
	}
	s.RTR, s.maySend = kind, true
	return s.takeRTR(&seg, kind&named)
}

// stagOf returns the STag of an RTR indication, and that of ours for a Send, which has
// none.
func stagOf(seg *ddp.Segment) uint32 {
	switch rdmap.OpcodeOf(&seg.Header) {
	case rdmap.OpSend:
		return script.RTRSTag
	case rdmap.OpReadRequest:
		r, _ := rdmap.ParseReadRequest(seg.Payload)
		return r.SrcSTag
	}
	return seg.STag
}

// takeRTR handles the first FPDU. A Send as RTR indication does not reach the consumer.
func (s *Session) takeRTR(seg *ddp.Segment, kind mpa.RTR) error {
	if kind == mpa.RTRSend {
		s.msn.send++
		return s.check(seg)
	}
	return s.dispatch(seg)
}
