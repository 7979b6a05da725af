package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// goesOn sees that an Initiator takes the Reply: it sends the frame or RTR
// indication that the Reply has asked for, or its consumer's first message.
func (s *Session) goesOn(q mpa.StartupFrame, f Startup) {
	r := mpa.StartupFrame(f.Octets())
	if s.Dialect() == mpa.DialectRtr && f.S {
		s.PeerRtrFrame(r)
	}
	s.Enter(q, r)
	e, enhanced := r.Enhanced()
	switch {
	case enhanced && e.A:
		s.PeerReady(e.RTR())
	case s.App() == AppRping:
		s.PeerAdvert("the client's source advert")
	default:
		s.stays()
	}
}

// stays sees that the peer does not end the connection.
func (s *Session) stays() {
	l := s.use()
	if s.look(s.opts.Quiet) == sightEnd {
		s.Failf("an open connection", "the connection %s", l.end)
	}
	s.note(Checked, "the connection stays open", nil)
}

// givesUp sees that an Initiator ends the connection, without a word or behind a
// Terminate.
func (s *Session) givesUp(q mpa.StartupFrame, because string) {
	expected := "the connection closed, behind a Terminate or without: " + because
	switch s.look(s.opts.Timeout) {
	case sightEnd:
		s.note(Checked, expected, nil)
		return
	case sightNothing:
		s.Failf(expected, "still open after %v", s.opts.Timeout)
	}
	if s.link.op == nil {
		s.Operate(Terms{CRC: q.C(), Version: 1})
	}
	seg := s.Segment(expected)
	s.Want(rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate, expected, describeSegment(&seg))
	s.expectEnd(expected)
}

// expectEnd expects the peer to close its half and send no more.
func (s *Session) expectEnd(expected string) {
	switch l := s.use(); s.look(s.opts.Timeout) {
	case sightOctets:
		s.leftover(l)
		s.Failf(expected, "%s more", count(len(l.in)))
	case sightNothing:
		s.Failf(expected, "still open after %v", s.opts.Timeout)
	}
	s.note(Checked, expected, nil)
}

// reply sends a Reply that must be taken.
func (s *Session) reply(adjust func(q mpa.StartupFrame, f *Startup)) {
	q := s.PeerRequest()
	f := s.Reply(q)
	if adjust != nil {
		adjust(q, &f)
	}
	s.Send("Reply", f.Octets())
	s.goesOn(q, f)
}

const partial = "it sends part of a Reply and waits, which kernels took for a whole one"

func replyFraming() []Case {
	cases := []Case{
		toInitiator("startup/rep-request", "Q01 Q05 Q06 Q08 Q09", fields,
			"The Initiator begins with a well-formed Request: key, R and reserved bits zero, PD_Length.", func(s *Session) {
				q := s.PeerRequest()
				s.Want(!q.R() && q.Res() == 0, "R and reserved bits zero in the Request", q)
				s.Want(s.Dialect() != mpa.DialectRFC5044 || !q.S(), "S zero in the Request", q)
			}),
		toInitiator("startup/rep-patience", "Q09", framing,
			"The Initiator sends nothing behind its Request before it has the Reply.", func(s *Session) {
				q := s.PeerRequest()
				s.ExpectNothing("the Initiator waits for the Reply")
				f := s.Reply(q)
				s.Send("Reply", f.Octets())
				s.goesOn(q, f)
			}),
		toInitiator("startup/rep-whole", "Q09", framing,
			"A Reply in one write is taken.", func(s *Session) { s.reply(nil) }),
		toInitiator("startup/rep-works", "Q09 Q14", framing,
			"Behind the startup the connection works.", func(s *Session) {
				s.Establish()
				s.Works()
			}).withRping(),
		toInitiator("startup/rep-octets", "Q13 Q14", framing,
			"A Reply that comes octet by octet is taken.", func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.ULP = text(3)
				s.SendOctets("Reply", f.Octets())
				s.goesOn(q, f)
			}).unsafe(partial),
		toInitiator("startup/rep-pd-waits", "Q08 Q13", framing,
			"The Initiator does not go on before the last octet of Private Data.", func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.ULP = text(8)
				b := f.Octets()
				s.Send("Reply without its last octet", b[:len(b)-1])
				s.ExpectNothing("the Private Data is not whole")
				s.Send("its last octet", b[len(b)-1:])
				s.goesOn(q, f)
			}).unsafe(partial),
	}
	for _, at := range []struct {
		name  string
		octet int
		text  string
	}{
		{"key", 8, "within its key"}, {"after-key", 16, "behind its key"}, {"header", 19, "within PD_Length"},
		{"after-header", 20, "behind its header"}, {"pd", 26, "within its Private Data"},
	} {
		cases = append(cases, toInitiator("startup/rep-split-"+at.name, "Q13 Q14", framing,
			fmt.Sprintf("A Reply that is split %s is taken.", at.text), func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.ULP = text(8)
				b := f.Octets()
				s.SendSplit("Reply", b[:at.octet], b[at.octet:])
				s.goesOn(q, f)
			}).unsafe(partial))
	}
	return all(frames(), cases...)
}

// replyKeys are frames that are no Reply.
func replyKeys() []Case {
	var cases []Case
	for _, k := range wrongKeys(mpa.KeyReply, mpa.KeyRequest) {
		cases = append(cases, toInitiator("startup/rep-key-"+k.name, "Q02 Q03", fields,
			"A frame with "+k.text+" in place of the Reply's key ends the connection.", func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.Key = k.key
				s.Send("second frame", f.Octets())
				s.givesUp(q, "it MUST close the connection if any other value is detected")
			}))
	}
	cases = append(cases, toInitiator("startup/rep-key-http", "Q02", fields,
		"An HTTP response in place of the Reply ends the connection.", func(s *Session) {
			q := s.PeerRequest()
			s.Send("HTTP response", []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			s.givesUp(q, "it MUST close the connection if any other value is detected")
		}).unsafe("where PD_Length would be, the text has a large number, and "+longData))
	return all(frames(), cases...)
}

// replyRevisions try revisions.
func replyRevisions() []Case {
	var cases []Case
	for _, rev := range []uint8{3, 255} {
		cases = append(cases, toInitiator(fmt.Sprintf("startup/rep-rev-%d", rev), "Q07", fields,
			fmt.Sprintf("A Reply of revision %d, without S, ends the connection.", rev), func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.Rev, f.S, f.Enhanced = rev, false, nil
				s.Send("Reply", f.Octets())
				s.givesUp(q, "it MUST close the connection if it cannot interoperate with the revision")
			}))
	}
	cases = append(cases,
		toInitiator("startup/rep-rev-0", "N03 N04 N05", "draft-carrier-rddp-rnic-interop-00 5",
			"A Reply of revision 0 to a Request of revision 1 ends the connection, or brings up one of version 0 with markers and CRCs.", replyRevision0).in(mpa.DialectRFC5044),
		toInitiator("negotiate/rep-enhanced", "E02", "RFC 6581 10",
			"An enhanced Reply to an unenhanced Request ends the connection.", func(s *Session) {
				q := s.PeerRequest()
				f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 2}, Enhanced: &mpa.Enhanced{IRD: depth, ORD: depth}}
				s.Send("Reply", f.Octets())
				s.givesUp(q, "the Responder MUST respond with an unenhanced message to such")
			}).in(mpa.DialectRFC5044),
	)
	return all(rfcs(), cases...)
}

func replyRevision0(s *Session) {
	q := s.PeerRequest()
	f := s.Reply(q)
	f.Rev, f.M = 0, true
	s.Send("Reply", f.Octets())
	if s.look(s.opts.Timeout) != sightOctets {
		s.givesUp(q, "a non-permissive RNIC closes the connection")
		return
	}
	s.Operate(Terms{true, true, true, 0})
	s.Segment("an FPDU with markers and CRC, of version 0")
}

// replyFlags try the bits of octet 16.
func replyFlags() []Case {
	cases := []Case{
		toInitiator("negotiate/rep-m", "F07 F08 F11 Q04", "RFC 5044 4.3, 7.1.1",
			"With M in the Reply the Initiator's FPDUs have markers, the first before the first FPDU.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.M = true })
			}),
		toInitiator("negotiate/rep-no-m", "F11 Q04", "RFC 5044 4.3, 7.1.1",
			"Without M in the Reply the Initiator's FPDUs have no markers.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.M = false })
			}),
		toInitiator("negotiate/rep-c", "F04 F14", "RFC 5044 4.4, 7.1.1",
			"With C in the Reply the Initiator's FPDUs have CRCs.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.C = true })
			}),
		toInitiator("negotiate/rep-no-c", "F14", "RFC 5044 4.4, 7.1.1",
			"Without C in the Reply the Request's C decides on CRCs.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.C = false })
			}),
	}
	for bit := range 4 {
		cases = append(cases, toInitiator(fmt.Sprintf("startup/rep-res-%d", 1<<bit), "Q06", fields,
			fmt.Sprintf("The reserved bit 0x%02x in a Reply is not checked.", 1<<bit), func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.Res = 1 << bit })
			}))
	}
	return all(rfcs(), cases...)
}
