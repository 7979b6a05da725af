package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

func longData() string {
	return fmt.Sprintf("kernels take no more than %d bytes, and may write beyond them", peers.KernelMaxPDLength)
}

const shortData = "kernels read the four bytes of enhanced data without checking that they are there"

// replyPrivateData try lengths of Private Data.
func replyPrivateData() []Case {
	var cases []Case
	for _, n := range lengths {
		c := mustAccept(fmt.Sprintf("startup/rep-pd-%d", n), "Q08 E01", fields,
			fmt.Sprintf("A Reply with %s of Private Data is taken.", wording.Bytes(n)),
			func(f *script.Startup) { total(f, n) })
		if n < mpa.EnhancedLen {
			c = c.in(plain()...)
		}
		if n > peers.KernelMaxPDLength {
			c = c.unsafe(longData())
		}
		cases = append(cases, c)
	}
	for _, n := range []int{513, 1024, 65535} {
		cases = append(cases, endsFor(fmt.Sprintf("startup/rep-pd-%d", n), "Q08", fields,
			fmt.Sprintf("A Reply with %d bytes of Private Data ends the connection.", n),
			"if the length exceeds 512 bytes, the receiver MUST close the connection",
			func(f *script.Startup) { total(f, n) }).unsafe(longData()))
	}
	for n := range mpa.EnhancedLen {
		cases = append(cases, endsFor(fmt.Sprintf("startup/rep-short-%d", n), "E01", "RFC 6581 6, 9",
			fmt.Sprintf("An enhanced Reply with %s of Private Data ends the connection.", wording.Bytes(n)),
			"with S=1, Private Data MUST begin with enhanced data", func(f *script.Startup) {
				f.Enhanced, f.ULP = nil, text(n)
			}).in(enhanced()...).unsafe(shortData))
	}
	return all(frames(), cases...)
}

// total gives the frame n bytes of Private Data in all.
func total(f *script.Startup, n int) {
	if f.Enhanced != nil {
		n -= mpa.EnhancedLen
	}
	f.ULP = text(n)
}

// replyRejects reject the Request.
func replyRejects() []Case {
	cases := []Case{
		toInitiator("startup/rep-reject", "Q05 Q10", framing,
			"After a rejection the Initiator leaves MPA: it sends no FPDU.", func(s *session) { s.reject(0, nil) }),
		toInitiator("startup/rep-reject-pd", "Q05 Q10", framing,
			"After a rejection with private data the Initiator sends no FPDU.", func(s *session) { s.reject(40, nil) }),
		toInitiator("startup/rep-reject-fin", "Q10 Q15", framing,
			"A FIN after a rejection ends the connection.", func(s *session) {
				s.reject(0, s.closeWrite)
				s.ends("we rejected the Request and closed our half")
			}),
		toInitiator("startup/rep-reject-data", "Q10", framing,
			"Streaming data after a rejection is no FPDU: the Initiator sends none, and no Terminate.",
			func(s *session) {
				s.reject(0, func() { s.send("streaming data", []byte("not MPA any more\r\n")) })
			}),
	}
	return all(frames(), cases...)
}

// reject rejects the Request, with n bytes of private data of the ULP, does
// something more, and sees that the Initiator has left MPA.
func (s *session) reject(n int, more func()) {
	q := s.peerRequest()
	f := s.replyTo(q)
	f.R, f.ULP = true, text(n)
	s.send("rejecting Reply", f.Bytes())
	if more != nil {
		more()
	}
	s.leavesMPA()
}

// replyEnds end the connection in place of the Reply.
func replyEnds() []Case {
	cases := []Case{
		toInitiator("startup/rep-silent", "Q12", framing,
			"An Initiator that gets no Reply gives up after a time.", func(s *session) {
				s.peerRequest()
				s.expectTimeout()
			}).slow(),
		toInitiator("startup/rep-stuck", "Q12", framing,
			"An Initiator whose Reply stops halfway gives up after a time.", func(s *session) {
				q := s.peerRequest()
				s.send("half a Reply", s.replyTo(q).Bytes()[:10])
				s.expectTimeout()
			}).slow().unsafe(partial),
		toInitiator("startup/rep-close", "Q15", "RFC 5044 7.2",
			"A FIN on an established connection ends it.", func(s *session) {
				s.establish()
				s.closeWrite()
				s.ends("the Responder has closed its half")
			}),
	}
	for _, at := range cuts() {
		cases = append(cases, toInitiator("startup/rep-"+at.name, at.requirements, at.section,
			textOf(at.text, "Reply"), func(s *session) {
				_, f := s.replyWithText(8)
				s.sendCut(&at, f.Bytes())
			}).unsafe(halfway))
	}
	return append(all(frames(), cases...), fallbacks()...)
}

// fallbacks refuse a Request of revision 2 as peers do that know none.
func fallbacks() []Case {
	var cases []Case
	for _, how := range []struct {
		name, text string
		refuse     func(*session, mpa.StartupFrame)
	}{
		{"close", "answered by a FIN", func(s *session, _ mpa.StartupFrame) { s.closeWrite() }},
		{"reset", "answered by a RST", func(s *session, _ mpa.StartupFrame) { s.reset() }},
		{"reject", "rejected in revision 1", func(s *session, _ mpa.StartupFrame) {
			f := script.Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply, C: true, R: true, Rev: 1}}
			s.send("rejecting Reply of revision 1", f.Bytes())
		}},
	} {
		cases = append(cases, toInitiator("fallback/rep-"+how.name, "E13", "RFC 6581 10",
			fmt.Sprintf("An Initiator whose enhanced Request is %s, and which tries again, does so with an unenhanced one.", how.text), func(s *session) {
				how.refuse(s, s.peerRequest())
				if !s.comesAgain() {
					s.notApplicable("the peer does not try again, which it MAY")
				}
				q := s.frame("a Request of revision 1")
				s.want(q.Rev() <= 1 && !q.S(), "an unenhanced Request", q)
			}).in(enhanced()...))
	}
	return cases
}
