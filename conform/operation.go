package conform

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// operation is the state of Full Operation on one connection.
type operation struct {
	Terms
	w        mpa.Writer
	r        mpa.Reader
	msn      map[uint32]uint32 // of our next message, by queue
	received map[uint32]uint32 // of the peer's next message, by queue
}

// Terms are what the startup frames settle for Full Operation.
type Terms struct {
	MarkersSend    bool  // we insert markers
	MarkersReceive bool  // the peer does
	CRC            bool  // CRCs are generated and checked
	Version        uint8 // of DDP and RDMAP
}

// String returns, for instance, "version 1, CRC, markers sent".
func (t Terms) String() string {
	parts := []string{fmt.Sprintf("version %d", t.Version)}
	for _, p := range []struct {
		set  bool
		text string
	}{{t.CRC, "CRC"}, {t.MarkersSend, "markers sent"}, {t.MarkersReceive, "markers received"}} {
		if p.set {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// Operate begins Full Operation with the given terms: what follows in either
// direction are FPDUs.
func (s *Session) Operate(t Terms) {
	l := s.use()
	l.op = &operation{
		Terms: t, w: mpa.NewWriter(t.MarkersSend, t.CRC), r: mpa.NewReader(t.MarkersReceive, t.CRC),
		msn: map[uint32]uint32{}, received: map[uint32]uint32{},
	}
	s.note(Did, "Full Operation: "+t.String(), nil)
}

// operating returns the state of Full Operation; a case that has not begun it is
// wrong.
func (s *Session) operating() *operation {
	if op := s.use().op; op != nil {
		return op
	}
	panic("conform: " + s.c.ID + ": FPDUs before Operate, Enter or Establish")
}

// Terms returns the terms of Full Operation.
func (s *Session) Terms() Terms { return s.operating().Terms }

// FrameULPDU returns the next FPDU around a ULPDU, without sending it: for a case
// that spoils or splits it.
func (s *Session) FrameULPDU(ulpdu []byte) []byte { return s.operating().w.Append(nil, ulpdu) }

// SendFPDU sends a ULPDU in an FPDU. The first one behind a Reply waits a moment:
// Linux's siw does not see what arrives before it has put its Reply into effect,
// which is no case's business but that of rtr/req-at-once.
func (s *Session) SendFPDU(text string, ulpdu []byte) {
	l := s.use()
	if l.reply != nil && l.fpdus == 0 {
		time.Sleep(settling)
	}
	s.sendFPDU(text, ulpdu)
}

func (s *Session) sendFPDU(text string, ulpdu []byte) {
	b := s.FrameULPDU(ulpdu)
	s.note(Sent, text+", FPDU: "+describeULPDU(ulpdu), b)
	s.link.fpdus++
	s.write(s.use(), b)
}

// SendSegment sends a DDP Segment in an FPDU.
func (s *Session) SendSegment(text string, h ddp.Header, payload []byte) {
	s.SendFPDU(text, append(h.Append(nil), payload...))
}

// Header returns the header of a whole message of one segment: L=1, and for an
// untagged one the next MSN of its queue.
func (s *Session) Header(op rdmap.Opcode) ddp.Header {
	o := s.operating()
	h := op.Header(o.Version)
	h.Last = true
	if !h.Tagged {
		h.MSN = ddp.FirstMSN + o.msn[h.QN]
		o.msn[h.QN]++
	}
	return h
}

// SendMessage sends a message of one segment with the next MSN.
func (s *Session) SendMessage(text string, op rdmap.Opcode, payload []byte) {
	s.SendSegment(text, s.Header(op), payload)
}

// SendTagged sends a tagged message of one segment.
func (s *Session) SendTagged(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
	h := s.Header(op)
	h.STag, h.TO = stag, to
	s.SendSegment(text, h, payload)
}

// FPDU waits for an FPDU and returns its ULPDU. One with a bad CRC or marker fails
// the case.
func (s *Session) FPDU(expected string) []byte {
	l, op := s.use(), s.operating()
	until := time.Now().Add(s.opts.Timeout)
	for {
		f, n, err := op.r.Next(bytes.Clone(l.in)) // it may compact what it is given
		switch {
		case err != nil:
			s.leftover(l)
			s.Failf(expected, "a bad FPDU: %v", err)
		case n > 0:
			b := l.in[:n:n]
			l.in = l.in[n:]
			s.note(Received, "FPDU: "+describeULPDU(f.ULPDU), b)
			l.heard = true
			return f.ULPDU
		case l.end != endNone:
			s.leftover(l)
			s.Failf(expected, "the connection %s", l.end)
		case !s.more(l, until):
			s.leftover(l)
			s.Failf(expected, "no FPDU within %v", s.opts.Timeout)
		}
	}
}

// Segment waits for a DDP Segment, which must have the stream's version and be
// possible in RDMAP.
func (s *Session) Segment(expected string) ddp.Segment {
	seg, err := ddp.Parse(s.FPDU(expected))
	if err != nil {
		s.Failf(expected, "%v", err)
	}
	if err := ddp.CheckVersion(&seg.Header, s.Terms().Version); err != nil {
		s.Failf(expected, "%v", err)
	}
	if err := rdmap.CheckExtendedSegment(&seg, s.Terms().Version); err != nil {
		s.Failf(expected, "%v", err)
	}
	return seg
}

// A Message is an RDMAP Message of the peer's.
type Message struct {
	Op      rdmap.Opcode
	Header  ddp.Header // of its first segment
	Payload []byte
}

// Message waits for a whole message of the given kind: its segments follow one
// another in the order of MO or TO, and its MSN is the next of its queue. Another
// message fails the case; but a zero-length Write, which has no effect and which a peer
// may send to be heard, is let pass if it is not its first.
func (s *Session) Message(op rdmap.Opcode, expected string) Message {
	heard := s.use().heard
	first := s.Segment(expected)
	for heard && op != rdmap.OpWrite && isEmptyWrite(&first) {
		first = s.Segment(expected)
	}
	m := Message{Op: rdmap.OpcodeOf(&first.Header), Header: first.Header, Payload: slices.Clone(first.Payload)}
	if m.Op != op {
		s.Failf(expected, "%s", describeSegment(&first))
	}
	s.checkFirst(&first, expected)
	for seg := first; !seg.Last; {
		seg = s.Segment(expected)
		s.checkNext(&m, &seg, expected)
		m.Payload = append(m.Payload, seg.Payload...)
	}
	return m
}

func isEmptyWrite(seg *ddp.Segment) bool {
	return rdmap.OpcodeOf(&seg.Header) == rdmap.OpWrite && seg.Last && len(seg.Payload) == 0
}

// checkFirst checks the MSN and MO of a message's first segment. [D17]
func (s *Session) checkFirst(seg *ddp.Segment, expected string) {
	if seg.Tagged {
		return
	}
	o := s.operating()
	if want := ddp.FirstMSN + o.received[seg.QN]; seg.MSN != want {
		s.Failf(fmt.Sprintf("%s, with MSN %d of queue %d", expected, want, seg.QN), "MSN %d", seg.MSN)
	}
	if seg.MO != 0 {
		s.Failf(expected+", with MO 0", "MO %d", seg.MO)
	}
	o.received[seg.QN]++
}

// checkNext checks that a segment continues a message.
func (s *Session) checkNext(m *Message, seg *ddp.Segment, expected string) {
	want := m.Header
	want.Last, want.MO, want.TO = seg.Last, m.Header.MO, m.Header.TO
	if want.Tagged {
		want.TO += uint64(len(m.Payload))
	} else {
		want.MO += uint32(len(m.Payload))
	}
	if seg.Header != want {
		s.Failf(fmt.Sprintf("%s: its next segment with %v", expected, want), "%v", seg.Header)
	}
}

// ExpectTerminate waits for a Terminate, with one of the codes if any are given,
// and for the end of the connection. Other messages on the way are let pass. A
// layout like that of Linux's siw is taken, too.
func (s *Session) ExpectTerminate(because string, codes ...rdmap.Code) rdmap.Terminate {
	expected := terminateText(codes) + ": " + because
	for {
		seg := s.Segment(expected)
		if rdmap.OpcodeOf(&seg.Header) != rdmap.OpTerminate {
			continue
		}
		t, err := rdmap.ParseTerminate(seg.Payload)
		if err != nil {
			s.Failf(expected, "%v", err)
		}
		s.Want(len(codes) == 0 || slices.Contains(codes, t.Code), expected, t)
		if t.Layout != rdmap.LayoutRFC {
			s.Notef("the Terminate has the layout of %v", t.Layout)
		}
		return t.Clone()
	}
}

func terminateText(codes []rdmap.Code) string {
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = c.String()
	}
	if len(names) == 0 {
		return "a Terminate"
	}
	return "a Terminate of " + strings.Join(names, " or ")
}
