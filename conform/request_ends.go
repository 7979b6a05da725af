package conform

const halfway = "it closes the connection in the middle of the startup, where kernels had use-after-free and NULL dereferences"

// A cut is a place in a startup frame of 8 bytes of private data at which the sender
// stops.
type cut struct {
	name, requirements, section string
	text                        string // with the name of the frame
	keep                        func(frame []byte) []byte
	because                     string
}

// cuts are those at which a FIN comes.
func cuts() []cut {
	return []cut{
		{"fin", "Q15 Q16", "RFC 5044 7.2, 8", "A FIN in place of the %s closes the connection.",
			func([]byte) []byte { return nil }, "no startup frame can come any more"},
		{"fin-key", "Q15 Q16", "RFC 5044 7.2, 8", "A FIN within the %s's key closes the connection.",
			func(b []byte) []byte { return b[:8] }, "the frame cannot become whole"},
		{"fin-pd", "Q08 Q15", framing, "A FIN before the %s has as many bytes as its PD_Length says closes the connection.",
			func(b []byte) []byte { return b[:len(b)-1] }, "PD_Length does not match the data"},
	}
}

// sendCut sends what a cut keeps of a frame, and the FIN.
func (s *session) sendCut(c *cut, frame []byte) {
	if b := c.keep(frame); len(b) > 0 {
		s.send("part of the frame", b)
	}
	s.closeWrite()
	s.expectClosed(c.because)
}

// requestEnds end the connection at every step.
func requestEnds() []Case {
	cases := []Case{
		toResponder("startup/req-silent", "Q12", framing,
			"A connection on which no Request comes is closed after a time.", func(s *session) {
				s.expectTimeout()
			}).slow(),
		toResponder("startup/req-stuck", "Q12", framing,
			"A connection on which a Request stops halfway is closed after a time.", func(s *session) {
				s.send("half a Request", s.request().Bytes()[:10])
				s.expectTimeout()
			}).slow(),
		toResponder("startup/req-stuck-pd", "Q12 Q08", framing,
			"A connection on which Private Data is missing is closed after a time.", func(s *session) {
				q := s.withText(8).Bytes()
				s.send("Request without its last byte", q[:len(q)-1])
				s.expectTimeout()
			}).slow(),
		toResponder("startup/req-fin-request", "Q15", "RFC 5044 7.2",
			"A FIN directly after the Request ends the connection.", func(s *session) {
				s.send("Request", s.request().Bytes())
				s.closeWrite()
				s.ends("the Initiator has closed its half")
				s.stillAccepts()
			}).unsafe(halfway),
		toResponder("startup/req-close", "Q15", "RFC 5044 7.2",
			"A FIN on an established connection ends it.", func(s *session) {
				s.accept(s.request(), "the Request is an ordinary one")
				s.closeWrite()
				s.ends("the Initiator has closed its half")
			}),
	}
	for _, at := range cuts() {
		cases = append(cases, toResponder("startup/req-"+at.name, at.requirements, at.section,
			textOf(at.text, "Request"), func(s *session) {
				s.sendCut(&at, s.withText(8).Bytes())
				s.stillAccepts()
			}).unsafe(halfway))
	}
	for _, at := range []struct {
		name  string
		bytes int
		text  string
	}{
		{"reset", 0, "in place of the Request"}, {"reset-key", 8, "within the key"},
		{"reset-pd", 22, "within the Private Data"}, {"reset-request", 28, "after the Request"},
	} {
		cases = append(cases, toResponder("startup/req-"+at.name, "Q16", "RFC 5044 8",
			"The Responder still takes connections when a RST comes "+at.text+".", func(s *session) {
				if b := s.withTotal(8).Bytes()[:at.bytes]; len(b) > 0 {
					s.send("Request", b)
				}
				s.reset()
				s.stillAccepts()
			}).unsafe(halfway))
	}
	return all(frames(), cases...)
}
