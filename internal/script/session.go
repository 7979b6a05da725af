package script

import (
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// A Session is a DDP session on a stream of an Association, which numbers what is sent, and
// puts what comes in order.
type Session struct {
	on     *Association
	stream uint16
	// SSN is the DDP-SSN of the next message to be sent.
	SSN   uint16
	next  uint16 // due from the other end
	ahead map[uint16]Message
	msn   map[uint32]uint32
}

// Session returns the one on a stream.
func (a *Association) Session(stream uint16) *Session {
	return &Session{on: a, stream: stream, ahead: map[uint16]Message{}, msn: map[uint32]uint32{}}
}

// Control returns the next message with session control.
func (s *Session) Control(c sctp.Control) sctp.Message {
	c.SSN = s.SSN
	s.SSN++
	return sctp.Message{Stream: s.stream, PPID: sctp.PPIDControl, Data: sctp.AppendControl(nil, &c)}
}

// Function returns the next message with session control that has no private data.
func (s *Session) Function(f sctp.Function) sctp.Message { return s.Control(sctp.Control{Function: f}) }

// Segment returns the next message with a DDP Segment.
func (s *Session) Segment(h ddp.Header, payload []byte) sctp.Message {
	b := sctp.AppendSegment(nil, s.SSN, h.Append(nil), payload)
	s.SSN++
	return sctp.Message{Stream: s.stream, PPID: sctp.PPIDSegment, Data: b}
}

// Ready returns the next message with an RTR indication of a kind.
func (s *Session) Ready(kind mpa.RTR) sctp.Message {
	switch kind {
	case mpa.RTRRead:
		return s.EmptyRead()
	case mpa.RTRSend:
		return s.Message(rdmap.OpSend, nil)
	}
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, RTRSTag
	return s.Segment(h, nil)
}

// EmptyRead returns the next message with an RDMA Read Request of no bytes, which every peer answers by itself: no
// memory is looked at.
func (s *Session) EmptyRead() sctp.Message {
	r := emptyRead()
	return s.Message(rdmap.OpReadRequest, r.Append(nil))
}

// Message returns the next message with an untagged message of RDMAP of one segment.
func (s *Session) Message(op rdmap.Opcode, payload []byte) sctp.Message {
	h := op.Header(1)
	s.msn[h.QN]++
	h.Last, h.MSN = true, s.msn[h.QN]
	return s.Segment(h, payload)
}

// Next waits for the next message of the session in the order of DDP-SSNs. One with another
// PPID than DDP's, without a DDP-SSN, with one that is over, or on another stream comes as it
// is. It reports false if none has come in time, or the association has ended.
func (s *Session) Next(until time.Time) (m Message, ok bool) {
	for {
		if m, ok = s.ahead[s.next]; ok {
			delete(s.ahead, s.next)
			s.on.held -= len(m.Data)
			s.next++
			return m, true
		}
		if m, ok = s.on.Next(until); !ok {
			return m, false
		}
		ssn, has := sctp.SSN(m.Data)
		if m.Stream != s.stream || !has || m.PPID != sctp.PPIDSegment && m.PPID != sctp.PPIDControl {
			return m, true
		}
		if _, known := s.ahead[ssn]; known || ssn-s.next >= 1<<15 {
			return m, true
		}
		s.ahead[ssn] = m
		s.on.held += len(m.Data)
	}
}

// Segment returns the DDP Segment of a message. It reports false if there is none, or no room for its header.
func (m *Message) Segment() (seg ddp.Segment, ok bool) {
	if m.PPID != sctp.PPIDSegment || len(m.Data) < sctp.SSNLen {
		return seg, false
	}
	seg, err := ddp.Parse(m.Data[sctp.SSNLen:])
	return seg, err == nil
}

// Parting returns what an enhanced session cannot be left without: the RTR indication that
// was agreed on, if one was, before it.
func (s *Session) Parting(asked, answered *mpa.Enhanced) []sctp.Message {
	if asked == nil || answered == nil || !asked.A || !answered.A {
		return nil
	}
	if kind := First(asked.RTR() & answered.RTR()); kind != 0 {
		return []sctp.Message{s.Ready(kind)}
	}
	return nil
}
