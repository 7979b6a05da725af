package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// replyDepths try IRD and ORD.
func replyDepths() []Case {
	cases := []Case{
		toInitiator("negotiate/rep-request", "E01 E07", "RFC 6581 9",
			"The Request's enhanced data is sound: B, C and D only with A, and then at least one.", func(s *session) {
				q := s.peerRequest()
				e, ok := q.Enhanced()
				s.want(ok, "4 bytes of enhanced data", q)
				s.want(e.A || !e.B && !e.C && !e.D, "B, C and D zero with A=0",
					fmt.Sprintf("B=%v C=%v D=%v", e.B, e.C, e.D))
				s.want(!e.A || e.RTR() != 0, "at least one of B, C and D set with A=1", e)
			}),
		toInitiator("negotiate/rep-ird-0", "E04", "RFC 6581 9.1",
			"A Reply with IRD 0 is taken: the Initiator lowers its ORD.", func(s *session) {
				s.takesReply(func(q mpa.StartupFrame, f *script.Startup) {
					e, _ := q.Enhanced()
					if e.A && e.RTR()&^mpa.RTRRead == 0 {
						s.notApplicable("the peer offers only a Read as RTR indication, which takes an IRD")
					}
					f.Enhanced.IRD = 0
				})
			}),
		mustAccept("negotiate/rep-ord-0", "E03", "RFC 6581 9.1",
			"A Reply with ORD 0 is taken.", func(f *script.Startup) { f.Enhanced.ORD = 0 }),
		mustAccept("negotiate/rep-ird-more", "E03", "RFC 6581 9.1",
			"A Reply with a larger IRD than is needed is taken.", func(f *script.Startup) { f.Enhanced.IRD = 0x3ffe }),
		mustAccept("negotiate/rep-3fff", "E06", "RFC 6581 9.1",
			"A Reply with IRD and ORD 0x3FFF is taken.", func(f *script.Startup) {
				f.Enhanced.IRD, f.Enhanced.ORD = mpa.NoNegotiation, mpa.NoNegotiation
			}),
		toInitiator("negotiate/rep-ord-more", "E04 E05", "RFC 6581 9.1",
			"For an ORD one above its IRD the Initiator raises its IRD, or sends a Terminate with code 6.",
			func(s *session) {
				s.moreORD(1)
			}).withRping(),
		toInitiator("negotiate/rep-ord-3ffe", "E05 E14", "RFC 6581 9.1",
			"For an ORD of 0x3FFE the Initiator raises its IRD, or sends a Terminate with code 6.", func(s *session) {
				q := s.peerRequest()
				f := s.replyTo(q)
				f.Enhanced.ORD = 0x3ffe
				s.send("Reply", f.Bytes())
				s.insufficient(q, f)
			}),
	}
	return all(enhanced(), cases...)
}

// moreORD answers with an ORD above the Request's IRD, and uses it if it may.
func (s *session) moreORD(by mpa.Depth) {
	q := s.peerRequest()
	f := s.replyTo(q)
	e, _ := q.Enhanced()
	if e.IRD >= depthTried {
		s.notApplicable("the peer's IRD is %d already", e.IRD)
	}
	f.Enhanced.ORD = e.IRD + by
	s.send("Reply", f.Bytes())
	if s.insufficient(q, f) {
		return
	}
	a := s.peerAdvert("the client's source advert")
	r := rdmap.ReadRequest{SinkSTag: sinkSTag, Size: a.Length, SrcSTag: a.STag, SrcTO: a.TO}
	var all []byte // at once, so that none is answered before the last has come
	for range f.Enhanced.ORD {
		h := s.nextHeader(rdmap.OpReadRequest)
		all = append(all, s.framed(append(h.Append(nil), r.Append(nil)...))...)
	}
	s.send("Read Requests", all)
	for i := range f.Enhanced.ORD {
		s.message(rdmap.OpReadResponse, fmt.Sprintf("Read Response %d of %d: the Initiator has not refused our ORD",
			i+1, f.Enhanced.ORD))
	}
}

// depthTried is up to which IRD a case has so many Reads outstanding.
const depthTried = 256

// insufficient reports whether the Initiator refuses our ORD by a Terminate; if not
// it must go on.
func (s *session) insufficient(q mpa.StartupFrame, f script.Startup) bool {
	s.enter(q, f.Bytes())
	if !f.Enhanced.A && s.look(s.quietTime()) == sightNothing {
		return false
	}
	l := s.use()
	if s.look(s.opts.Timeout) == sightEnd {
		s.failf("an FPDU: the first of the connection, or a Terminate", "the connection %s", l.End())
	}
	if s.terminates() {
		s.expectTerminate("the Initiator has no resources for the IRD", rdmap.CodeMPAInsufficientIRD)
		return true
	}
	if f.Enhanced.A {
		s.peerRTR(f.Enhanced.RTR())
	}
	return false
}

// replyModels try the connection models and RTR indications.
func replyModels() []Case {
	var cases []Case
	for _, m := range models {
		cases = append(cases, toInitiator("rtr/rep-"+m.name, "E09 E10", "RFC 6581 9.2",
			fmt.Sprintf("A Reply that takes %v as RTR indication gets one that was offered, before any other FPDU, or a Terminate with code 7.", m.kinds), func(s *session) {
				s.replyModel(mpa.Enhanced{}.WithRTR(m.kinds))
			}))
	}
	cases = append(cases, toInitiator("rtr/rep-a0", "E07 E12", "RFC 6581 9.2",
		"In the client-server model the first FPDU is the consumer's, and no RTR indication.", func(s *session) {
			q := s.peerRequest()
			if e, _ := q.Enhanced(); e.A {
				s.notApplicable("the peer asks for the peer-to-peer model")
			}
			f := s.replyTo(q)
			s.send("Reply", f.Bytes())
			s.enter(q, f.Bytes())
			s.peerAdvert("the client's source advert")
		}).withRping())
	return all(enhanced(), cases...)
}

// replyModel answers A=1 with a set of RTR indications.
func (s *session) replyModel(e mpa.Enhanced) {
	q := s.peerRequest()
	asked, _ := q.Enhanced()
	if !asked.A {
		s.notApplicable("the peer asks for the client-server model")
	}
	f := s.replyTo(q)
	e.IRD, e.ORD = max(f.Enhanced.IRD, 1), f.Enhanced.ORD
	f.Enhanced = &e
	s.send("Reply", f.Bytes())
	s.enter(q, f.Bytes())
	if both := asked.RTR() & e.RTR(); both != 0 {
		s.peerRTR(both)
		s.works()
		return
	}
	s.expectTerminate(fmt.Sprintf("the Request offers %v and the Reply takes %v", asked.RTR(), e.RTR()),
		rdmap.CodeMPANoMatchingRTR)
	s.expectEnd(s.opts.Timeout, "the connection closed after the Terminate")
}

// replyData look at the connection after the startup.
func replyData() []Case {
	return all(frames(),
		toInitiator("negotiate/rep-m-works", "F07 F11 Q04", "RFC 5044 4.3",
			"With M in the Reply the connection works.", func(s *session) {
				s.setup(s.respondWithMarkers)
				s.works()
			}).withRping(),
		toInitiator("negotiate/rep-pd-works", "Q08 Q13", framing,
			"The Reply's private data is not part of the first FPDU: the connection works.", func(s *session) {
				s.setup(func() {
					s.respond(s.replyWithText(37))
				})
				s.works()
			}).withRping(),
	)
}

// respondWithMarkers brings up a connection with markers toward us.
func (s *session) respondWithMarkers() {
	q := s.peerRequest()
	f := s.replyTo(q)
	f.M = true
	s.respond(q, f)
}
