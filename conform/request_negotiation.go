package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// depths are pairs of IRD and ORD that a Request asks for.
var depths = [...]struct {
	name     string
	ird, ord uint16
}{
	{"0", 0, 0}, {"1", 1, 1}, {"8", 8, 8}, {"32", 32, 32}, {"128", 128, 128}, {"129", 129, 129}, {"3ffe", 0x3ffe, 0x3ffe},
	{"3fff", 0x3fff, 0x3fff}, {"ird-0", 0, 8}, {"ord-0", 8, 0}, {"ird-3fff", 0x3fff, 8}, {"ord-3fff", 8, 0x3fff},
}

// requestDepths try IRD and ORD.
func requestDepths() []Case {
	var cases []Case
	for _, d := range depths {
		cases = append(cases, toResponder("negotiate/req-depth-"+d.name, "E03 E04 E06 E14", "RFC 6581 9.1",
			fmt.Sprintf("A Request with IRD 0x%x and ORD 0x%x gets a Reply with an ORD of at most that IRD, and 0x3FFF for 0x3FFF.", d.ird, d.ord), func(s *Session) {
				q := s.Request()
				q.Enhanced.IRD, q.Enhanced.ORD = d.ird, d.ord
				r := s.acceptEnhanced(q)
				s.checkDepths(q.Enhanced, r)
				s.ExpectNothing("the connection is established")
			}))
	}
	cases = append(cases, toResponder("negotiate/req-enhanced", "E01 E02", "RFC 6581 10",
		"An enhanced Request gets an enhanced Reply.", func(s *Session) {
			s.acceptEnhanced(s.Request())
		}))
	return all(enhanced(), cases...)
}

// acceptEnhanced sends an enhanced Request, which must be accepted likewise, and
// opens the connection.
func (s *Session) acceptEnhanced(q Startup) mpa.Enhanced {
	s.Send("Request", q.Octets())
	r := s.PeerAccepts("the Request is an ordinary one")
	e, ok := r.Enhanced()
	s.Want(ok && r.Rev() >= 2, "a Reply with S=1, of revision 2, with enhanced data", r)
	s.Enter(q.Octets(), r)
	if e.A {
		s.Want(e.RTR() != 0, "at least one of B, C and D set with A=1", e)
		s.offered(q, e)
	}
	return e
}

// offered sends an RTR indication that the Reply names, if we offered it.
func (s *Session) offered(q Startup, e mpa.Enhanced) {
	if both := e.RTR() & q.Enhanced.RTR(); both != 0 {
		s.SendReady(both)
	}
}

func (s *Session) checkDepths(q *mpa.Enhanced, r mpa.Enhanced) {
	if q.ORD == mpa.NoNegotiation {
		s.Want(r.IRD == mpa.NoNegotiation, "IRD 0x3FFF in answer to ORD 0x3FFF", r)
	}
	if q.IRD == mpa.NoNegotiation {
		s.Want(r.ORD == mpa.NoNegotiation, "ORD 0x3FFF in answer to IRD 0x3FFF", r)
		return
	}
	s.Want(r.ORD <= q.IRD || r.ORD == mpa.NoNegotiation, fmt.Sprintf("an ORD of at most the Initiator's IRD, %d", q.IRD), r)
}

// models are settings of A, B, C and D in a Request.
var models = [...]struct {
	name string
	e    mpa.Enhanced
}{
	{"a1-write", mpa.Enhanced{A: true, C: true}},
	{"a1-read", mpa.Enhanced{A: true, D: true}},
	{"a1-send", mpa.Enhanced{A: true, B: true}},
	{"a1-write-read", mpa.Enhanced{A: true, C: true, D: true}},
	{"a1-all", mpa.Enhanced{A: true, B: true, C: true, D: true}},
	{"a1-none", mpa.Enhanced{A: true}},
}

// requestModels try the connection models and RTR indications.
func requestModels() []Case {
	var cases []Case
	for _, m := range models {
		cases = append(cases, toResponder("negotiate/req-"+m.name, "E07 E08", "RFC 6581 9.2",
			fmt.Sprintf("A Request with A=1 that offers %v as RTR indication gets a Reply with A=1 that names at least one.", m.e.RTR()), func(s *Session) {
				e := s.acceptEnhanced(s.withModel(m.e))
				s.Want(e.A, "A=1 in answer to A=1", e)
				s.ExpectNothing("the connection is established")
			}))
	}
	for _, m := range []struct {
		name string
		e    mpa.Enhanced
		text string
	}{
		{"a0", mpa.Enhanced{}, "A Request with A=0 gets a Reply with A, B, C and D all zero."},
		{"a0-bcd", mpa.Enhanced{B: true, C: true, D: true}, "B, C and D are ignored with A=0: the Reply has all four zero."},
	} {
		cases = append(cases, toResponder("negotiate/req-"+m.name, "E07", "RFC 6581 9.2", m.text, func(s *Session) {
			e := s.acceptEnhanced(s.withModel(m.e))
			s.Want(!e.A, "A=0 in answer to A=0", e)
			s.Want(!e.B && !e.C && !e.D, "B, C and D zero with A=0", fmt.Sprintf("B=%v C=%v D=%v", e.B, e.C, e.D))
		}))
	}
	return all(enhanced(), cases...)
}

func (s *Session) withModel(e mpa.Enhanced) Startup {
	q := s.Request()
	e.IRD, e.ORD = depth, depth
	q.Enhanced = &e
	return q
}

// zeroWrite returns the ULPDU of a zero-length RDMA Write, DDP version 1.
func zeroWrite() []byte {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, rtrSTag
	return h.Append(nil)
}

// requestReady look at who may send, and at the RTR indications.
func requestReady() []Case {
	cases := []Case{
		toResponder("rtr/req-silence", "Q11", framing,
			"The Responder sends no FPDU before it has received one.", func(s *Session) {
				q := s.Request()
				s.Send("Request", q.Octets())
				r := s.PeerAccepts("the Request is an ordinary one")
				s.ExpectNothing("Responders MUST receive and validate at least one FPDU before sending any FPDUs or Markers")
				s.open(q, r)
			}).in(frames()...),
		toResponder("rtr/req-silence-a0", "Q11", framing,
			"In the client-server model, too, the Responder sends no FPDU before it has received one.", func(s *Session) {
				s.Send("Request", s.withModel(mpa.Enhanced{}).Octets())
				s.PeerAccepts("the Request is an ordinary one")
				s.ExpectNothing("Responders MUST receive and validate at least one FPDU before sending any FPDUs or Markers")
			}),
		toResponder("rtr/req-write", "E09", "RFC 6581 9.2",
			"A zero-length Write is an RTR indication, which no consumer sees.", func(s *Session) { s.readyBy(mpa.RTRWrite, 1) }),
		toResponder("rtr/req-write-stag-0", "E09 D23", "RFC 6581 9.2, RFC 5041 5.2",
			"The STag of a zero-length Write as RTR indication is not looked at.", func(s *Session) { s.readyBy(mpa.RTRWrite, 0) }),
		toResponder("rtr/req-read", "E09", "RFC 6581 9.2",
			"A zero-length Read as RTR indication is answered by a zero-length Response.", func(s *Session) { s.readyBy(mpa.RTRRead, 1) }),
		toResponder("rtr/req-send", "E09", "RFC 6581 9.2",
			"A zero-length Send as RTR indication takes no receive of the consumer's.", func(s *Session) { s.readyBy(mpa.RTRSend, 1) }),
		toResponder("rtr/req-at-once", "Q13 E09", "RFC 6581 9.2",
			"An RTR indication, and a message behind it, that arrive right behind the Reply are not overlooked.", func(s *Session) {
				q := s.withModel(mpa.Enhanced{A: true, C: true})
				s.Send("Request", q.Octets())
				r := s.PeerAccepts("the Request is an ordinary one")
				if e, _ := r.Enhanced(); !e.C {
					s.NotApplicable("the peer does not take a Write as RTR indication")
				}
				s.Enter(q.Octets(), r)
				s.sendFPDU("RTR indication", zeroWrite())
				s.Ping()
			}).withRping().unsafe("kernels that overlook the RTR indication crash when the connection ends"),
		toResponder("rtr/req-message", "E07 E12", "RFC 6581 9.2",
			"With A=0 the Initiator's first message opens the connection.", func(s *Session) {
				s.Setup(func() {
					q := s.withModel(mpa.Enhanced{})
					s.Send("Request", q.Octets())
					s.Enter(q.Octets(), s.PeerAccepts("the Request is an ordinary one"))
				})
				s.Ping()
			}).withRping(),
		toResponder("rtr/req-rev-1-read", "P26", "RFC 5040 5.2.1",
			"A zero-length Read as first FPDU of revision 1, as some RNICs send it, is answered.", func(s *Session) {
				s.Setup(func() { s.Initiate(s.Request()) })
				s.readIfServed()
			}).in(mpa.DialectRFC5044),
	}
	return all(enhanced(), cases...)
}

// readyBy opens a peer-to-peer connection with one kind of RTR indication.
func (s *Session) readyBy(kind mpa.RTR, stag uint32) {
	e := mpa.Enhanced{A: true, B: kind == mpa.RTRSend, C: kind == mpa.RTRWrite, D: kind == mpa.RTRRead}
	q := s.withModel(e)
	s.Send("Request", q.Octets())
	r := s.PeerAccepts("the Request is an ordinary one")
	answer, _ := r.Enhanced()
	if answer.RTR()&kind == 0 {
		s.NotApplicable("the peer does not take %v as RTR indication: its Reply names %v", kind, answer.RTR())
	}
	s.Enter(q.Octets(), r)
	if kind == mpa.RTRWrite {
		s.SendTagged("RTR indication", rdmap.OpWrite, stag, 0, nil)
	} else {
		s.SendReady(kind)
	}
	s.Works()
}

// requestData look at the FPDUs that a Responder sends.
func requestData() []Case {
	cases := []Case{
		toResponder("negotiate/req-m-markers", "F07 F08 F11 Q04", "RFC 5044 4.3",
			"With M in the Request the Responder's FPDUs have markers, the first before the first FPDU.", func(s *Session) {
				s.readsWith(func(q *Startup) { q.M = true })
			}),
		toResponder("negotiate/req-m-none", "F11 Q04", "RFC 5044 4.3",
			"Without M in the Request the Responder's FPDUs have no markers.", func(s *Session) {
				s.readsWith(func(q *Startup) { q.M = false })
			}).in(rfcs()...),
		toResponder("negotiate/req-c-crc", "F04 F14", "RFC 5044 4.4",
			"With C in the Request the Responder's FPDUs have CRCs.", func(s *Session) {
				s.readsWith(func(q *Startup) { q.C = true })
			}),
		toResponder("negotiate/req-no-c-crc", "F05 F14", "RFC 5044 4.4",
			"Without C in the Request the Reply's C decides on CRCs.", func(s *Session) {
				s.readsWith(func(q *Startup) { q.C = false })
			}),
	}
	return all(frames(), cases...)
}

// manyReads is how many zero-length Responses take more than 512 octets.
const manyReads = 30

// readsWith reads nothing many times over, to see the Responder's FPDUs.
func (s *Session) readsWith(adjust func(*Startup)) {
	q := s.Request()
	adjust(&q)
	s.Setup(func() { s.Initiate(q) })
	for range manyReads {
		s.readIfServed()
	}
}

// readIfServed is ReadNothing for a peer that may take no Reads, as its IRD may be 0.
func (s *Session) readIfServed() {
	s.sendReadNothing("zero-length Read")
	if s.look(s.opts.Timeout) != sightOctets {
		s.Inconclusive("the peer does not answer a zero-length Read")
	}
	seg := s.Segment("a zero-length Read Response")
	if rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate {
		s.Inconclusive("the peer does not serve a zero-length Read: %s", describeSegment(&seg))
	}
	want := rdmap.OpReadResponse.Header(s.Terms().Version)
	want.Last, want.STag = true, rtrSTag
	s.Want(seg.Header == want && len(seg.Payload) == 0, "a zero-length Read Response", describeSegment(&seg))
}
