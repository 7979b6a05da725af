package conform

const halfway = "it closes the connection in the middle of the startup, where kernels had use-after-free and NULL dereferences"

// requestEnds end the connection at every step.
func requestEnds() []Case {
	cases := []Case{
		toResponder("startup/req-silent", "Q12", framing,
			"A connection on which no Request comes is closed after a time.", func(s *Session) {
				s.ExpectTimeout("implementations SHOULD put a timeout on waiting for the Request")
			}).slow(),
		toResponder("startup/req-stuck", "Q12", framing,
			"A connection on which a Request stops halfway is closed after a time.", func(s *Session) {
				s.Send("half a Request", s.Request().Octets()[:10])
				s.ExpectTimeout("implementations SHOULD put a timeout on waiting for the Request")
			}).slow(),
		toResponder("startup/req-stuck-pd", "Q12 Q08", framing,
			"A connection on which Private Data is missing is closed after a time.", func(s *Session) {
				q := s.withText(8).Octets()
				s.Send("Request without its last octet", q[:len(q)-1])
				s.ExpectTimeout("implementations SHOULD put a timeout on waiting for the Request")
			}).slow(),
		toResponder("startup/req-fin", "Q15 Q16", "RFC 5044 7.2, 8",
			"A FIN in place of the Request is answered by closing the connection.", func(s *Session) {
				s.CloseWrite()
				s.ExpectClosed("no Request can come any more")
				s.again()
			}).unsafe(halfway),
		toResponder("startup/req-fin-key", "Q15 Q16", "RFC 5044 7.2, 8",
			"A FIN within the key is answered by closing the connection.", func(s *Session) {
				s.Send("half a key", s.Request().Octets()[:8])
				s.CloseWrite()
				s.ExpectClosed("the Request cannot become whole")
				s.again()
			}).unsafe(halfway),
		toResponder("startup/req-fin-pd", "Q08 Q15", framing,
			"A PD_Length larger than what is sent before the FIN closes the connection.", func(s *Session) {
				q := s.withText(8).Octets()
				s.Send("Request without its last octet", q[:len(q)-1])
				s.CloseWrite()
				s.ExpectClosed("PD_Length does not match the data")
				s.again()
			}).unsafe(halfway),
		toResponder("startup/req-fin-request", "Q15", "RFC 5044 7.2",
			"A FIN right behind the Request ends the connection.", func(s *Session) {
				s.Send("Request", s.Request().Octets())
				s.CloseWrite()
				s.ends("the Initiator has closed its half")
				s.again()
			}).unsafe(halfway),
		toResponder("startup/req-close", "Q15", "RFC 5044 7.2",
			"A FIN on an established connection ends it.", func(s *Session) {
				q := s.Request()
				s.accept(q, "the Request is an ordinary one")
				s.CloseWrite()
				s.ends("the Initiator has closed its half")
			}),
	}
	for _, at := range []struct {
		name   string
		octets int
		text   string
	}{{"reset", 0, "in place of the Request"}, {"reset-key", 8, "within the key"}, {"reset-pd", 22, "within the Private Data"}, {"reset-request", 28, "behind the Request"}} {
		cases = append(cases, toResponder("startup/req-"+at.name, "Q16", "RFC 5044 8",
			"After a RST "+at.text+" the Responder still takes connections.", func(s *Session) {
				q := s.withTotal(8).Octets()
				if at.octets > 0 {
					s.Send("Request", q[:at.octets])
				}
				s.use()
				s.Reset()
				s.again()
			}).unsafe(halfway))
	}
	return all(frames(), cases...)
}

// ends expects the end of the connection, whatever comes before it.
func (s *Session) ends(because string) {
	_, closed := s.Drain("on the way")
	for rest := s.opts.Timeout; !closed && rest > 0; rest -= s.opts.Quiet {
		_, closed = s.Drain("on the way")
	}
	s.Want(closed, "the connection closed: "+because, "still open")
}
