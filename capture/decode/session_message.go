package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/sctp"
)

// messageName names a message by its PPID and its Function Code.
func messageName(m *capture.Message) string {
	switch f := function(m); {
	case m.PPID == sctp.PPIDSegment:
		return "a DDP Segment"
	case f == 0:
		return "a session control message"
	default:
		c, _ := sctp.ParseControl(m.Data)
		return fmt.Sprintf("%v", c.Function)
	}
}

// form judges what does not depend on the session, and reports whether the message has a
// DDP-SSN.
func (x *session) form(h *half, m *capture.Message) bool {
	say := func(k finding, text, advice string) { x.c.report(k, m.Dir, h.told, m.Last, text, advice) }
	switch {
	case m.PPID != sctp.PPIDSegment && m.PPID != sctp.PPIDControl:
		say(findPPID, fmt.Sprintf("PPID %d, in an association of DDP: %s", m.PPID, wording.Bytes(m.Length)),
			"DDP has PPID 16 for segments and 17 for session control, in network byte order, and nothing else may use the association")
		return false
	case m.Length < sctp.SSNLen:
		say(findSessionMessage, fmt.Sprintf("a message of %s, which has no room for a DDP-SSN",
			wording.Bytes(m.Length)), "")
		return false
	case len(m.Data) < sctp.SSNLen:
		x.notCaptured(m, h.told, m.Length-len(m.Data))
		h.broken = true
		return false
	}
	if !m.Unordered {
		// RFC 5043, section 10: "The adaptation layer MUST use the Unordered option on all Data Chunks (U Flag set to
		// one)."
		say(findOrdered, messageName(m)+" without the U flag",
			"SCTP delays what follows a lost chunk if it is ordered: DDP has an order of its own")
	}
	if m.Chunks > 1 {
		say(findFragmented, fmt.Sprintf("%s in %d DATA chunks", messageName(m), m.Chunks),
			"DDP segments are made so that SCTP does not fragment them, unless IP would have to")
	}
	return true
}

// notCaptured tells of bytes of a message that the capture's snap length has cut off.
func (x *session) notCaptured(m *capture.Message, offset uint64, n int) {
	x.c.report(findGap, m.Dir, offset, m.Last, "not judged: "+wording.Bytes(n)+" "+capture.CauseSnap.String(),
		gapAdvice(capture.CauseSnap))
}

// ssnOf is the DDP-SSN of a message in the right form.
func ssnOf(m *capture.Message) uint16 {
	ssn, _ := sctp.SSN(m.Data)
	return ssn
}

// handleMessage works off the next message of a direction.
func (x *session) handleMessage(m *capture.Message, ahead bool) {
	h, s := &x.c.halves[m.Dir], &x.sides[m.Dir]
	number, offset := s.next, s.offset
	s.next, s.offset = number+1, offset+uint64(m.Length)
	if !capture.Before(m.TSN, s.tsn) {
		s.tsn = m.TSN + 1
	}
	x.tellMessage(m, offset, ahead)
	if x.pub().Session.Terminated[m.Dir] {
		x.sequence(m, offset, messageName(m)+" after the sender's own Terminate",
			"a Terminate is the last message of its sender in the session")
	}
	if m.PPID == sctp.PPIDControl {
		x.control(m, number, offset)
	} else {
		x.early(m, number, offset)
		x.segment(h, m, offset, ahead)
	}
	h.told = s.offset
}

// tellMessage tells of a message as of a TCP segment.
func (x *session) tellMessage(m *capture.Message, offset uint64, ahead bool) {
	s := Segment{Packet: m.Last, Dir: m.Dir, Seq: m.TSN, Offset: offset, Length: m.Length, Captured: len(m.Data),
		Order: capture.OrderNext}
	if ahead {
		s.Order = capture.OrderAhead
	}
	x.c.d.tellSegment(x.c, &s)
}

// sequence reports a message in none of the legal sequences.
//
// RFC 5043, section 6.1: "If the adaptation layer receives a Payload Data Chunk that conforms to none of the enumerated
// legal patterns, the DDP Stream Session MUST be terminated." [C04]
func (x *session) sequence(m *capture.Message, offset uint64, text, advice string) {
	if !x.pub().Midstream {
		x.c.report(findSequence, m.Dir, offset, m.Last, text, advice)
	}
}

// early judges whether a DDP Segment may be sent yet.
//
// RFC 5043, section 6.3: "DDP Stream Sessions allow each party to send a single non-payload message before the other
// end commits specific resources to the session." [C04]
func (x *session) early(m *capture.Message, number, offset uint64) {
	say := func(text, advice string) {
		if !x.pub().Midstream {
			x.c.report(findSegmentEarly, m.Dir, offset, m.Last, text, advice)
		}
	}
	switch {
	case !x.begun:
		say("a DDP Segment on a stream without a session", "the active end sends an Initiate, and waits for the Accept")
	case number == 0:
		say("a DDP Segment in place of the answer to the Initiate",
			"the passive end answers with an Accept, a Reject or a Terminate")
	case m.Dir == x.active && !x.answer && x.on.of.Ends[m.Dir.Peer()].Whole():
		say("a DDP Segment of the active end before the Accept", "the active end waits for the Accept")
	}
}

// segment tells of a DDP Segment, and judges it as one in an FPDU.
func (x *session) segment(h *half, m *capture.Message, offset uint64, ahead bool) {
	f, o := &x.c.d.fpdu, h.publicHalf()
	*f = FPDU{
		Dir: m.Dir, Number: o.FPDUs + o.Cut + 1, Offset: offset, End: offset + uint64(m.Length),
		First: m.First, Last: m.Last,
		Begins: true, Ends: true, Length: m.Length - sctp.SSNLen, CRC: CRCOff, Cut: m.Length - len(m.Data),
		ULPDU: m.Data[sctp.SSNLen:],
		Chunk: &Chunk{SSN: ssnOf(m), TSN: m.TSN, Ahead: ahead, Chunks: m.Chunks, Ordered: !m.Unordered},
	}
	if f.Cut == 0 {
		f.Bytes = m.Data
		o.FPDUs++
		o.Bytes += uint64(m.Length)
		o.Content += uint64(f.Length)
		o.Sizes.Add(uint64(m.Length))
	} else {
		o.Cut++
		x.notCaptured(m, offset, f.Cut)
	}
	h.parseSegment(f)
	h.message(f)
	x.c.d.to.FPDU(x.c.pub, f)
	h.judge(f)
}
