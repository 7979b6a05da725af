package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// replyDepths try IRD and ORD.
func replyDepths() []Case {
	cases := []Case{
		toInitiator("negotiate/rep-request", "E01 E07", "RFC 6581 9",
			"The Request's enhanced data is sound: B, C and D only with A, and then at least one.", func(s *Session) {
				q := s.PeerRequest()
				e, ok := q.Enhanced()
				s.Want(ok, "4 octets of enhanced data", q)
				s.Want(e.A || !e.B && !e.C && !e.D, "B, C and D zero with A=0", fmt.Sprintf("B=%v C=%v D=%v", e.B, e.C, e.D))
				s.Want(!e.A || e.RTR() != 0, "at least one of B, C and D set with A=1", e)
			}),
		toInitiator("negotiate/rep-ird-0", "E04", "RFC 6581 9.1",
			"A Reply with IRD 0 is taken: the Initiator lowers its ORD.", func(s *Session) {
				s.reply(func(q mpa.StartupFrame, f *Startup) {
					e, _ := q.Enhanced()
					if e.A && e.RTR()&^mpa.RTRRead == 0 {
						s.NotApplicable("the peer offers only a Read as RTR indication, which takes an IRD")
					}
					f.Enhanced.IRD = 0
				})
			}),
		toInitiator("negotiate/rep-ord-0", "E03", "RFC 6581 9.1",
			"A Reply with ORD 0 is taken.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.Enhanced.ORD = 0 })
			}),
		toInitiator("negotiate/rep-ird-more", "E03", "RFC 6581 9.1",
			"A Reply with a larger IRD than is needed is taken.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.Enhanced.IRD = 0x3ffe })
			}),
		toInitiator("negotiate/rep-3fff", "E06", "RFC 6581 9.1",
			"A Reply with IRD and ORD 0x3FFF is taken.", func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) {
					f.Enhanced.IRD, f.Enhanced.ORD = mpa.NoNegotiation, mpa.NoNegotiation
				})
			}),
		toInitiator("negotiate/rep-ord-more", "E04 E05", "RFC 6581 9.1",
			"For an ORD one above its IRD the Initiator raises its IRD, or sends a Terminate with code 6.", func(s *Session) {
				s.moreORD(1)
			}).withRping(),
		toInitiator("negotiate/rep-ord-3ffe", "E05 E14", "RFC 6581 9.1",
			"For an ORD of 0x3FFE the Initiator raises its IRD, or sends a Terminate with code 6.", func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.Enhanced.ORD = 0x3ffe
				s.Send("Reply", f.Octets())
				s.insufficient(q, f)
			}),
	}
	return all(enhanced(), cases...)
}

// moreORD answers with an ORD above the Request's IRD, and uses it if it may.
func (s *Session) moreORD(by uint16) {
	q := s.PeerRequest()
	f := s.Reply(q)
	e, _ := q.Enhanced()
	if e.IRD >= depthTried {
		s.NotApplicable("the peer's IRD is %d already", e.IRD)
	}
	f.Enhanced.ORD = e.IRD + by
	s.Send("Reply", f.Octets())
	if s.insufficient(q, f) {
		return
	}
	a := s.PeerAdvert("the client's source advert")
	r := rdmap.ReadRequest{SinkSTag: sinkSTag, Size: a.Length, SrcSTag: a.STag, SrcTO: a.TO}
	var all []byte // at once, so that none is answered before the last has come
	for range f.Enhanced.ORD {
		h := s.Header(rdmap.OpReadRequest)
		all = append(all, s.FrameULPDU(append(h.Append(nil), r.Append(nil)...))...)
	}
	s.use().fpdus++
	s.Send("Read Requests", all)
	for i := range f.Enhanced.ORD {
		s.Message(rdmap.OpReadResponse, fmt.Sprintf("Read Response %d of %d: the Initiator has not refused our ORD", i+1, f.Enhanced.ORD))
	}
}

// depthTried is up to which IRD a case has so many Reads outstanding.
const depthTried = 256

// insufficient reports whether the Initiator refuses our ORD by a Terminate; if not
// it must go on.
func (s *Session) insufficient(q mpa.StartupFrame, f Startup) bool {
	s.Enter(q, f.Octets())
	if !f.Enhanced.A && s.look(s.opts.Quiet) == sightNothing {
		return false
	}
	l := s.use()
	if s.look(s.opts.Timeout) == sightEnd {
		s.Failf("an FPDU: the first of the connection, or a Terminate", "the connection %s", l.end)
	}
	if s.nextOpcode() == rdmap.OpTerminate {
		s.ExpectTerminate("the Initiator has no resources for the IRD", rdmap.CodeMPAInsufficientIRD)
		return true
	}
	if f.Enhanced.A {
		s.PeerReady(f.Enhanced.RTR())
	}
	return false
}

// nextOpcode returns the opcode of the next FPDU, and leaves the FPDU where it is.
func (s *Session) nextOpcode() rdmap.Opcode {
	l, op := s.use(), s.operating()
	kept := *op
	before := len(s.log)
	seg := s.Segment("an FPDU")
	octets := s.log[len(s.log)-1].Octets
	l.in = append(append([]byte{}, octets...), l.in...)
	op.r, s.log = kept.r, s.log[:before]
	return rdmap.OpcodeOf(&seg.Header)
}

// replyModels try the connection models and RTR indications.
func replyModels() []Case {
	var cases []Case
	for _, m := range []struct {
		name string
		e    mpa.Enhanced
	}{
		{"write", mpa.Enhanced{A: true, C: true}},
		{"read", mpa.Enhanced{A: true, D: true}},
		{"send", mpa.Enhanced{A: true, B: true}},
		{"write-read", mpa.Enhanced{A: true, C: true, D: true}},
		{"all", mpa.Enhanced{A: true, B: true, C: true, D: true}},
		{"none", mpa.Enhanced{A: true}},
	} {
		cases = append(cases, toInitiator("rtr/rep-"+m.name, "E09 E10", "RFC 6581 9.2",
			fmt.Sprintf("A Reply that takes %v as RTR indication gets one that was offered, before any other FPDU, or a Terminate with code 7.", m.e.RTR()), func(s *Session) {
				s.replyModel(m.e)
			}))
	}
	cases = append(cases, toInitiator("rtr/rep-a0", "E07 E12", "RFC 6581 9.2",
		"In the client-server model the first FPDU is the consumer's, and no RTR indication.", func(s *Session) {
			q := s.PeerRequest()
			if e, _ := q.Enhanced(); e.A {
				s.NotApplicable("the peer asks for the peer-to-peer model")
			}
			f := s.Reply(q)
			s.Send("Reply", f.Octets())
			s.Enter(q, f.Octets())
			s.PeerAdvert("the client's source advert")
		}).withRping())
	return all(enhanced(), cases...)
}

// replyModel answers A=1 with a set of RTR indications.
func (s *Session) replyModel(e mpa.Enhanced) {
	q := s.PeerRequest()
	asked, _ := q.Enhanced()
	if !asked.A {
		s.NotApplicable("the peer asks for the client-server model")
	}
	f := s.Reply(q)
	e.IRD, e.ORD = max(f.Enhanced.IRD, 1), f.Enhanced.ORD
	f.Enhanced = &e
	s.Send("Reply", f.Octets())
	s.Enter(q, f.Octets())
	if both := asked.RTR() & e.RTR(); both != 0 {
		s.PeerReady(both)
		s.Works()
		return
	}
	s.ExpectTerminate(fmt.Sprintf("the Request offers %v and the Reply takes %v", asked.RTR(), e.RTR()), rdmap.CodeMPANoMatchingRTR)
	s.expectEnd("the connection closed behind the Terminate")
}

// replyData look at the connection behind the startup.
func replyData() []Case {
	return all(frames(),
		toInitiator("negotiate/rep-m-works", "F07 F11 Q04", "RFC 5044 4.3",
			"With M in the Reply the connection works.", func(s *Session) {
				s.Setup(s.respondWithMarkers)
				s.Works()
			}).withRping(),
		toInitiator("negotiate/rep-pd-works", "Q08 Q13", framing,
			"The Reply's private data is not part of the first FPDU: the connection works.", func(s *Session) {
				s.Setup(func() {
					q := s.PeerRequest()
					f := s.Reply(q)
					f.ULP = text(37)
					s.Respond(q, f)
				})
				s.Works()
			}).withRping(),
	)
}

// respondWithMarkers brings up a connection with markers towards us.
func (s *Session) respondWithMarkers() {
	q := s.PeerRequest()
	f := s.Reply(q)
	f.M = true
	s.Respond(q, f)
}
