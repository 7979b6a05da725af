package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// goesOn sees that an Initiator takes the Reply: it sends the frame or RTR
// indication that the Reply has asked for, or its consumer's first message.
func (s *session) goesOn(q mpa.StartupFrame, f script.Startup) {
	switch {
	case s.opened(q, f):
	case s.app() == AppRping:
		s.peerAdvert("the client's source advert")
	default:
		s.expectOpen()
	}
}

// expectOpen sees that the peer does not end the connection.
func (s *session) expectOpen() {
	l := s.use()
	if s.look(s.quietTime()) == sightEnd {
		s.failf("an open connection", "the connection %s", l.End())
	}
	s.note(Checked, "the connection stays open", nil)
}

// givesUp sees that an Initiator ends the connection, without a word or after a
// Terminate.
func (s *session) givesUp(q mpa.StartupFrame, because string) {
	expected := "the connection closed, after a Terminate or without one: " + because
	switch s.look(s.opts.Timeout) {
	case sightEnd:
		s.note(Checked, expected, nil)
		return
	case sightNothing:
		s.failf(expected, "still open after %v", s.opts.Timeout)
	}
	if !s.link.Operating() {
		s.operate(script.Terms{CRC: q.C(), Version: 1})
	}
	seg := s.segment(expected)
	s.want(rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate, expected, script.DescribeSegment(&seg))
	s.expectEnd(s.opts.Timeout, expected)
}

// reply sends a Reply that must be taken.
func (s *session) takesReply(adjust func(q mpa.StartupFrame, f *script.Startup)) {
	q := s.peerRequest()
	f := s.replyTo(q)
	if adjust != nil {
		adjust(q, &f)
	}
	s.send("Reply", f.Bytes())
	s.goesOn(q, f)
}

const partial = "it sends part of a Reply and waits, which kernels took for a whole one"

func replyFraming() []Case {
	cases := []Case{
		toInitiator("startup/rep-request", "Q01 Q05 Q06 Q08 Q09", fields,
			"The Initiator begins with a well-formed Request: key, R and reserved bits zero, PD_Length.",
			func(s *session) {
				q := s.peerRequest()
				s.want(!q.R() && q.Res() == 0, "R and reserved bits zero in the Request", q)
				s.want(s.dialect() != mpa.DialectRFC5044 || !q.S(), "S zero in the Request", q)
			}),
		toInitiator("startup/rep-patience", "Q09", framing,
			"The Initiator sends nothing after its Request before it has the Reply.", func(s *session) {
				q := s.peerRequest()
				s.expectNothing("the Initiator waits for the Reply")
				f := s.replyTo(q)
				s.send("Reply", f.Bytes())
				s.goesOn(q, f)
			}),
		toInitiator("startup/rep-whole", "Q09", framing,
			"A Reply in one write is taken.", func(s *session) { s.takesReply(nil) }),
		toInitiator("startup/rep-works", "Q09 Q14", framing,
			"After the startup the connection works.", func(s *session) {
				s.establish()
				s.works()
			}).withRping(),
		toInitiator("startup/rep-bytes", "Q13 Q14", framing,
			"A Reply that comes byte by byte is taken.", func(s *session) {
				q, f := s.replyWithText(3)
				s.sendEach("Reply", f.Bytes())
				s.goesOn(q, f)
			}).unsafe(partial),
		toInitiator("startup/rep-pd-waits", "Q08 Q13", framing,
			"The Initiator does not go on before the last byte of Private Data.", func(s *session) {
				q, f := s.replyWithText(8)
				s.sendLate("Reply", f.Bytes())
				s.goesOn(q, f)
			}).unsafe(partial),
	}
	for _, at := range splits {
		cases = append(cases, toInitiator("startup/rep-split-"+at.name, "Q13 Q14", framing,
			"A Reply that is split "+at.text+" is taken.", func(s *session) {
				q, f := s.replyWithText(8)
				b := f.Bytes()
				s.sendSplit("Reply", b[:at.byte], b[at.byte:])
				s.goesOn(q, f)
			}).unsafe(partial))
	}
	return all(frames(), cases...)
}

// replyWithText waits for the Request, and returns it with an accepting Reply that has
// n bytes of private data of the ULP.
func (s *session) replyWithText(n int) (q mpa.StartupFrame, f script.Startup) {
	q = s.peerRequest()
	f = s.replyTo(q)
	f.ULP = text(n)
	return q, f
}

// mustAccept returns a case in which an Initiator must take an adjusted Reply.
func mustAccept(id, requirements, section, text string, adjust func(f *script.Startup)) Case {
	return toInitiator(id, requirements, section, text, func(s *session) {
		s.takesReply(func(_ mpa.StartupFrame, f *script.Startup) { adjust(f) })
	})
}

// endsFor returns a case in which an Initiator must end the connection for an adjusted
// Reply.
func endsFor(id, requirements, section, text, because string, adjust func(f *script.Startup)) Case {
	return toInitiator(id, requirements, section, text, func(s *session) {
		q := s.peerRequest()
		f := s.replyTo(q)
		adjust(&f)
		s.send("Reply", f.Bytes())
		s.givesUp(q, because)
	})
}

// replyKeys are frames that are no Reply.
func replyKeys() []Case {
	var cases []Case
	for _, k := range wrongKeys(mpa.KeyReply, mpa.KeyRequest) {
		cases = append(cases, endsFor("startup/rep-key-"+k.name, "Q02 Q03", fields,
			"A frame with "+k.text+" in place of the Reply's key ends the connection.",
			"it MUST close the connection if any other value is detected", func(f *script.Startup) { f.Key = k.key }))
	}
	cases = append(cases, toInitiator("startup/rep-key-http", "Q02", fields,
		"An HTTP response in place of the Reply ends the connection.", func(s *session) {
			q := s.peerRequest()
			s.send("HTTP response", []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			s.givesUp(q, "it MUST close the connection if any other value is detected")
		}).unsafe("where PD_Length would be, the text has a large number, and "+longData()))
	return all(frames(), cases...)
}

// replyRevisions try revisions.
func replyRevisions() []Case {
	var cases []Case
	for _, rev := range []uint8{3, 255} {
		cases = append(cases, endsFor(fmt.Sprintf("startup/rep-rev-%d", rev), "Q07", fields,
			fmt.Sprintf("A Reply of revision %d, without S, ends the connection.", rev),
			"it MUST close the connection if it cannot interoperate with the revision", func(f *script.Startup) {
				f.Rev, f.S, f.Enhanced = rev, false, nil
			}))
	}
	cases = append(cases,
		toInitiator("startup/rep-rev-0", "N03 N04 N05", "draft-carrier-rddp-rnic-interop-00 5",
			"A Reply of revision 0 to a Request of revision 1 ends the connection, or brings up one of version 0 with markers and CRCs.", replyRevision0).in(mpa.DialectRFC5044),
		endsFor("negotiate/rep-enhanced", "E02", "RFC 6581 10",
			"An enhanced Reply to an unenhanced Request ends the connection.",
			"the Responder MUST respond with an unenhanced message to such", func(f *script.Startup) {
				f.Rev, f.S, f.Enhanced = 2, true, &mpa.Enhanced{IRD: depth, ORD: depth}
			}).in(mpa.DialectRFC5044),
	)
	return all(rfcs(), cases...)
}

func replyRevision0(s *session) {
	q := s.peerRequest()
	f := s.replyTo(q)
	f.Rev, f.M = 0, true
	s.send("Reply", f.Bytes())
	if s.look(s.opts.Timeout) != sightBytes {
		s.givesUp(q, "a non-permissive RNIC closes the connection")
		return
	}
	s.operate(script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true})
	s.segment("an FPDU with markers and CRC, of version 0")
}

// replyFlags try the bits of byte 16.
func replyFlags() []Case {
	cases := []Case{
		mustAccept("negotiate/rep-m", "F07 F08 F11 Q04", "RFC 5044 4.3, 7.1.1",
			"With M in the Reply the Initiator's FPDUs have markers, the first before the first FPDU.",
			func(f *script.Startup) { f.M = true }),
		mustAccept("negotiate/rep-no-m", "F11 Q04", "RFC 5044 4.3, 7.1.1",
			"Without M in the Reply the Initiator's FPDUs have no markers.", func(f *script.Startup) { f.M = false }),
		mustAccept("negotiate/rep-c", "F04 F14", "RFC 5044 4.4, 7.1.1",
			"With C in the Reply the Initiator's FPDUs have CRCs.", func(f *script.Startup) { f.C = true }),
		mustAccept("negotiate/rep-no-c", "F14", "RFC 5044 4.4, 7.1.1",
			"Without C in the Reply the Request's C decides on CRCs.", func(f *script.Startup) { f.C = false }),
	}
	for bit := range 4 {
		cases = append(cases, mustAccept(fmt.Sprintf("startup/rep-res-%d", 1<<bit), "Q06", fields,
			fmt.Sprintf("The reserved bit 0x%02x in a Reply is not checked.", 1<<bit),
			func(f *script.Startup) { f.Res = 1 << bit }))
	}
	return all(rfcs(), cases...)
}
