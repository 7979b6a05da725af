package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// operate begins Full Operation with the given terms: what follows in either
// direction are FPDUs.
func (s *session) operate(t script.Terms) {
	s.use().Operate(t)
	s.note(Did, "Full Operation: "+t.String(), nil)
}

// operating returns the link in Full Operation; a case that has not begun it is wrong.
func (s *session) operating() *link {
	if l := s.use(); l.Operating() {
		return l
	}
	panic("conform: " + s.c.ID + ": FPDUs before operate, enter or establish")
}

// terms returns the terms of Full Operation.
func (s *session) terms() script.Terms { return s.operating().Terms() }

// framed returns the next FPDU around a ULPDU, without sending it: for a case that
// spoils or splits it.
func (s *session) framed(ulpdu []byte) []byte { return s.operating().Framed(ulpdu) }

// sendFPDU sends a ULPDU in an FPDU. The first one after a Reply waits a moment:
// Linux's siw does not see what arrives before it has put its Reply into effect,
// which is no case's business but that of rtr/req-at-once.
func (s *session) sendFPDU(text string, ulpdu []byte) {
	if l := s.operating(); l.answered != nil && !l.Spoke() {
		time.Sleep(settling)
	}
	s.sendFPDUAtOnce(text, ulpdu)
}

func (s *session) sendFPDUAtOnce(text string, ulpdu []byte) {
	b := s.framed(ulpdu)
	s.note(Sent, text+", FPDU: "+script.DescribeULPDU(ulpdu), b)
	s.write(s.use(), b, 0, b)
}

// sendSegment sends a DDP Segment in an FPDU.
func (s *session) sendSegment(text string, h ddp.Header, payload []byte) {
	s.sendFPDU(text, append(h.Append(nil), payload...))
}

// nextHeader returns the header of a whole message of one segment: L=1, and for an
// untagged one the next MSN of its queue.
func (s *session) nextHeader(op rdmap.Opcode) ddp.Header { return s.operating().Header(op) }

// sendMessage sends a message of one segment with the next MSN.
func (s *session) sendMessage(text string, op rdmap.Opcode, payload []byte) {
	s.sendSegment(text, s.nextHeader(op), payload)
}

// sendTagged sends a tagged message of one segment.
func (s *session) sendTagged(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
	h := s.nextHeader(op)
	h.STag, h.TO = stag, to
	s.sendSegment(text, h, payload)
}

// fpdu waits for an FPDU and returns its ULPDU. One with a bad CRC or marker fails
// the case.
func (s *session) fpdu(expected string) []byte {
	l := s.operating()
	f, err := l.NextFPDU(s.deadline())
	var bad *mpa.Error
	switch {
	case errors.As(err, &bad):
		s.leftover(l)
		s.failf(expected, "a bad FPDU: %v", bad)
	case err != nil:
		s.missing(l, err, expected)
	}
	l.last = f
	s.note(Received, "FPDU: "+script.DescribeULPDU(f.ULPDU), f.Bytes)
	return f.ULPDU
}

// segment waits for a DDP Segment, which must have the stream's version and be
// possible in RDMAP.
func (s *session) segment(expected string) ddp.Segment {
	seg, err := ddp.Parse(s.fpdu(expected))
	if err != nil {
		s.failf(expected, "%v", err)
	}
	if err := ddp.CheckVersion(&seg.Header, s.terms().Version); err != nil {
		s.failf(expected, "%v", err)
	}
	if err := rdmap.CheckSegment(&seg, s.terms().Version); err != nil {
		s.failf(expected, "%v", err)
	}
	return seg
}

// message waits for a whole message of the given kind, and returns the header of its
// first segment with all of the payload. Its segments follow one another in the order
// of MO or TO, and its MSN is the next of its queue. Another message fails the case;
// but a zero-length Write, which has no effect and which a peer may send to be heard,
// is let pass if it is not its first.
func (s *session) message(op rdmap.Opcode, expected string) ddp.Segment {
	heard := s.use().Heard()
	m := s.segment(expected)
	for heard && op != rdmap.OpWrite && mpa.RTROf(rdmap.ZeroLength(&m)) == mpa.RTRWrite {
		m = s.segment(expected)
	}
	if rdmap.OpcodeOf(&m.Header) != op {
		s.failf(expected, "%s", script.DescribeSegment(&m))
	}
	s.checkFirst(&m, expected)
	m.Payload = slices.Clone(m.Payload)
	for last := m.Last; !last; {
		seg := s.segment(expected)
		s.checkNext(&m, &seg, expected)
		m.Payload, last = append(m.Payload, seg.Payload...), seg.Last
	}
	return m
}

// checkFirst checks the MSN and MO of a message's first segment. [D17]
func (s *session) checkFirst(seg *ddp.Segment, expected string) {
	if seg.Tagged {
		return
	}
	l := s.operating()
	if want := ddp.FirstMSN + l.received[seg.QN]; seg.MSN != want {
		s.failf(fmt.Sprintf("%s, with MSN %d of queue %d", expected, want, seg.QN), "MSN %d", seg.MSN)
	}
	if seg.MO != 0 {
		s.failf(expected+", with MO 0", "MO %d", seg.MO)
	}
	l.received[seg.QN]++
}

// checkNext checks that a segment continues a message.
func (s *session) checkNext(m *ddp.Segment, seg *ddp.Segment, expected string) {
	want := m.Header
	want.Last, want.MO, want.TO = seg.Last, m.Header.MO, m.TO
	if want.Tagged {
		want.TO += uint64(len(m.Payload))
	} else {
		want.MO += uint32(len(m.Payload))
	}
	if seg.Header != want {
		s.failf(fmt.Sprintf("%s: its next segment with %v", expected, want), "%v", seg.Header)
	}
}

// expectTerminate waits for a Terminate, with one of the codes if any are given,
// and for the end of the connection. Other messages on the way are let pass. A
// layout like that of Linux's siw is taken, too.
func (s *session) expectTerminate(because string, codes ...rdmap.Code) {
	expected := terminateText(codes) + ": " + because
	for {
		seg := s.segment(expected)
		if rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate {
			s.terminate(&seg, expected, codes)
			return
		}
	}
}

// terminate looks at a Terminate, which has one of the codes, if there are any.
func (s *session) terminate(seg *ddp.Segment, expected string, codes []rdmap.Code) *rdmap.Terminate {
	t, err := rdmap.ParseTerminate(seg.Payload)
	if err != nil {
		s.failf(expected, "%v", err)
	}
	s.want(len(codes) == 0 || slices.Contains(codes, t.Code), expected, t)
	if t.Layout != rdmap.LayoutRFC {
		s.notef("the Terminate has the layout of %v", t.Layout)
	}
	return &t
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
