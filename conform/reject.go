package conform

import (
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// rejects returns a case for a Responder whose application rejects every Request.
func rejects(name, requirements, section, text string, run func(*session)) Case {
	c := toResponder("reject/"+name, requirements, section, text, run)
	c.App = AppReject
	return c
}

// rejections are what a Responder must do whose application rejects the Request.
func rejections() []Case {
	cases := []Case{
		rejects("req", "Q05 Q10", framing,
			"A Request that the application rejects gets a well-formed Reply with R=1.", func(s *session) {
				q := s.request()
				s.wellFormed(q, s.peerRejects(q))
			}),
		rejects("req-enhanced", "E01 E08 Q05", "RFC 6581 6, 9",
			"The Reply that rejects an enhanced Request is enhanced, and answers A=1 with A=1.", func(s *session) {
				r := s.peerRejects(s.request())
				e, ok := r.Enhanced()
				s.want(ok, "a Reply with S=1 and enhanced data", r)
				s.want(e.A, "A=1 in answer to A=1", e)
			}).in(enhanced()...),
		rejects("req-rev-0", "N05 Q05", carrier,
			"The Reply that rejects a Request of revision 0 has M=1 and C=1.", func(s *session) {
				r := s.peerRejects(s.request())
				s.want(r.M() && r.C(), "a Reply with M=1 and C=1", r)
			}).in(mpa.DialectRevision0),
		rejects("req-pd", "Q08 Q10", framing,
			"A Request with 512 bytes of Private Data is rejected as any other.", func(s *session) {
				s.peerRejects(s.withTotal(mpa.MaxPrivateData))
			}),
		rejects("req-no-fpdu", "Q10 Q11", framing,
			"After it has rejected a Request the Responder sends no FPDU.", func(s *session) {
				s.peerRejects(s.request())
				s.leavesMPA()
			}),
		rejects("req-data", "Q10", framing,
			"Streaming data after a rejection is no FPDU: the Responder answers with no Terminate.", func(s *session) {
				s.peerRejects(s.request())
				s.send("streaming data", []byte("not MPA any more\r\n"))
				s.leavesMPA()
			}),
		rejects("req-fin", "Q10 Q15", framing,
			"A FIN after a rejection is answered by a FIN: the connection is not reset.", func(s *session) {
				s.peerRejects(s.request())
				s.closeWrite()
				s.ends("we have closed our half")
				s.want(s.link.End() == script.FIN, "a FIN", s.link.End())
			}),
		rejects("req-again", "Q10", framing,
			"After a rejection the Responder takes and rejects another Request.", func(s *session) {
				s.peerRejects(s.request())
				s.reconnect()
				s.peerRejects(s.request())
			}),
	}
	return all(frames(), cases...)
}

// peerRejects sends a Request that the application rejects.
func (s *session) peerRejects(q script.Startup) mpa.StartupFrame {
	s.send("Request", q.Bytes())
	r := s.peerReply("a rejecting Reply")
	s.want(r.R(), "a Reply with R=1: the application rejects the Request", r)
	return r
}

// leavesMPA sees that the peer sends no more after a rejection. It may close the connection.
func (s *session) leavesMPA() {
	const expected = "no FPDU: the Request was rejected"
	if s.look(s.quietTime()) == sightBytes {
		s.unexpected(s.link, expected)
	}
	s.note(Checked, expected, nil)
}
