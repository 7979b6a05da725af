package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

const (
	longData  = "kernels take no more than 256 octets, and may write behind them"
	shortData = "kernels read the four octets of enhanced data without looking whether they are there"
)

// replyPrivateData try lengths of Private Data.
func replyPrivateData() []Case {
	var cases []Case
	for _, n := range lengths {
		c := toInitiator(fmt.Sprintf("startup/rep-pd-%d", n), "Q08 E01", fields,
			fmt.Sprintf("A Reply with %d octets of Private Data is taken.", n), func(s *Session) {
				s.reply(func(_ mpa.StartupFrame, f *Startup) { f.total(n) })
			})
		if n < mpa.EnhancedLen {
			c = c.in(plain()...)
		}
		if n > 256 {
			c = c.unsafe(longData)
		}
		cases = append(cases, c)
	}
	for _, n := range []int{513, 1024, 65535} {
		cases = append(cases, toInitiator(fmt.Sprintf("startup/rep-pd-%d", n), "Q08", fields,
			fmt.Sprintf("A Reply with %d octets of Private Data ends the connection.", n), func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.total(n)
				s.Send("Reply", f.Octets())
				s.givesUp(q, "if the length exceeds 512 octets, the receiver MUST close the connection")
			}).unsafe(longData))
	}
	for n := range mpa.EnhancedLen {
		cases = append(cases, toInitiator(fmt.Sprintf("startup/rep-short-%d", n), "E01", "RFC 6581 6, 9",
			fmt.Sprintf("An enhanced Reply with %d octets of Private Data ends the connection.", n), func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.Enhanced, f.ULP = nil, text(n)
				s.Send("Reply", f.Octets())
				s.givesUp(q, "with S=1, Private Data MUST begin with enhanced data")
			}).in(enhanced()...).unsafe(shortData))
	}
	return all(frames(), cases...)
}

// total gives the frame n octets of Private Data in all.
func (f *Startup) total(n int) {
	if f.Enhanced != nil {
		n -= mpa.EnhancedLen
	}
	f.ULP = text(n)
}

// replyRejects reject the Request.
func replyRejects() []Case {
	cases := []Case{
		toInitiator("startup/rep-reject", "Q05 Q10", framing,
			"Behind a rejection the Initiator leaves MPA: it sends no FPDU.", func(s *Session) { s.reject(0, nil) }),
		toInitiator("startup/rep-reject-pd", "Q05 Q10", framing,
			"Behind a rejection with private data the Initiator sends no FPDU.", func(s *Session) { s.reject(40, nil) }),
		toInitiator("startup/rep-reject-fin", "Q10 Q15", framing,
			"A FIN behind a rejection ends the connection.", func(s *Session) {
				s.reject(0, s.CloseWrite)
				s.ends("we rejected the Request and closed our half")
			}),
		toInitiator("startup/rep-reject-data", "Q10", framing,
			"Streaming data behind a rejection is no FPDU: the Initiator sends none, and no Terminate.", func(s *Session) {
				s.reject(0, func() { s.Send("streaming data", []byte("not MPA any more\r\n")) })
			}),
	}
	return all(frames(), cases...)
}

// reject rejects the Request, with n octets of private data of the ULP, does
// something more, and sees that the Initiator has left MPA.
func (s *Session) reject(n int, more func()) {
	q := s.PeerRequest()
	f := s.Reply(q)
	f.R, f.ULP = true, text(n)
	s.Send("rejecting Reply", f.Octets())
	if more != nil {
		more()
	}
	if s.look(s.opts.Quiet) == sightOctets {
		l := s.use()
		s.leftover(l)
		s.Failf("no FPDU: the Request was rejected", "%s", count(len(l.in)))
	}
	s.note(Checked, "no FPDU: the Request was rejected", nil)
}

// replyEnds end the connection in place of the Reply.
func replyEnds() []Case {
	cases := []Case{
		toInitiator("startup/rep-silent", "Q12", framing,
			"An Initiator that gets no Reply gives up after a time.", func(s *Session) {
				s.PeerRequest()
				s.ExpectTimeout("implementations SHOULD put a timeout on the startup frames")
			}).slow(),
		toInitiator("startup/rep-stuck", "Q12", framing,
			"An Initiator whose Reply stops halfway gives up after a time.", func(s *Session) {
				q := s.PeerRequest()
				s.Send("half a Reply", s.Reply(q).Octets()[:10])
				s.ExpectTimeout("implementations SHOULD put a timeout on the startup frames")
			}).slow().unsafe(partial),
		toInitiator("startup/rep-fin", "Q15 Q16", "RFC 5044 7.2, 8",
			"A FIN in place of the Reply ends the connection.", func(s *Session) {
				s.PeerRequest()
				s.CloseWrite()
				s.ExpectClosed("no Reply can come any more")
			}).unsafe(halfway),
		toInitiator("startup/rep-fin-key", "Q15 Q16", "RFC 5044 7.2, 8",
			"A FIN within the Reply's key ends the connection.", func(s *Session) {
				q := s.PeerRequest()
				s.Send("half a key", s.Reply(q).Octets()[:8])
				s.CloseWrite()
				s.ExpectClosed("the Reply cannot become whole")
			}).unsafe(halfway),
		toInitiator("startup/rep-fin-pd", "Q08 Q15", framing,
			"A PD_Length larger than what is sent before the FIN ends the connection.", func(s *Session) {
				q := s.PeerRequest()
				f := s.Reply(q)
				f.ULP = text(8)
				b := f.Octets()
				s.Send("Reply without its last octet", b[:len(b)-1])
				s.CloseWrite()
				s.ExpectClosed("PD_Length does not match the data")
			}).unsafe(halfway),
		toInitiator("startup/rep-close", "Q15", "RFC 5044 7.2",
			"A FIN on an established connection ends it.", func(s *Session) {
				s.Establish()
				s.CloseWrite()
				s.ends("the Responder has closed its half")
			}),
	}
	cases = all(frames(), cases...)
	return append(cases, fallbacks()...)
}

// fallbacks refuse a Request of revision 2 as peers do that know none.
func fallbacks() []Case {
	var cases []Case
	for _, how := range []struct {
		name, text string
		refuse     func(*Session, mpa.StartupFrame)
	}{
		{"close", "closed", func(s *Session, _ mpa.StartupFrame) { s.CloseWrite() }},
		{"reset", "reset", func(s *Session, _ mpa.StartupFrame) { s.Reset() }},
		{"reject", "rejected in revision 1", func(s *Session, _ mpa.StartupFrame) {
			f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply, C: true, R: true, Rev: 1}}
			s.Send("rejecting Reply of revision 1", f.Octets())
		}},
	} {
		cases = append(cases, toInitiator("fallback/rep-"+how.name, "E13", "RFC 6581 10",
			fmt.Sprintf("An Initiator whose enhanced Request is %s, and which tries again, does so with an unenhanced one.", how.text), func(s *Session) {
				how.refuse(s, s.PeerRequest())
				if !s.ComesAgain() {
					s.NotApplicable("the peer does not try again, which it MAY")
				}
				q := s.Frame("a Request of revision 1")
				s.Want(q.Rev() <= 1 && !q.S(), "an unenhanced Request", q)
			}).in(enhanced()...))
	}
	return cases
}
