package conform

import (
	"fmt"
	"strconv"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// depths are pairs of IRD and ORD that a Request asks for.
var depths = [...]struct {
	name     string
	ird, ord mpa.Depth
}{
	{"0", 0, 0}, {"1", 1, 1}, {"8", 8, 8}, {"32", 32, 32}, {"128", 128, 128}, {"129", 129, 129},
	{"3ffe", 0x3ffe, 0x3ffe},
	{"3fff", mpa.NoNegotiation, mpa.NoNegotiation}, {"ird-0", 0, 8}, {"ord-0", 8, 0},
	{"ird-3fff", mpa.NoNegotiation, 8}, {"ord-3fff", 8, mpa.NoNegotiation},
}

// onWire is a depth as it is sent: 0x3FFF is no number of Reads.
func onWire(d mpa.Depth) string {
	return wording.If(d == mpa.NoNegotiation, "0x3FFF", strconv.Itoa(int(d)))
}

// requestDepths try IRD and ORD.
func requestDepths() []Case {
	var cases []Case
	for _, d := range depths {
		cases = append(cases, toResponder("negotiate/req-depth-"+d.name, "E03 E04 E06 E14", "RFC 6581 9.1",
			fmt.Sprintf("A Request with IRD %v and ORD %v gets a Reply with an ORD of at most that IRD, and 0x3FFF for 0x3FFF.", onWire(d.ird), onWire(d.ord)), func(s *session) {
				q := s.request()
				q.Enhanced.IRD, q.Enhanced.ORD = d.ird, d.ord
				r := s.acceptEnhanced(q)
				s.checkDepths(q.Enhanced, r)
				s.expectNothing("the connection is established")
			}))
	}
	cases = append(cases, toResponder("negotiate/req-enhanced", "E01 E02", "RFC 6581 10",
		"An enhanced Request gets an enhanced Reply.", func(s *session) {
			s.acceptEnhanced(s.request())
		}))
	return all(enhanced(), cases...)
}

// acceptEnhanced sends an enhanced Request, which must be accepted likewise, and
// opens the connection.
func (s *session) acceptEnhanced(q script.Startup) mpa.Enhanced {
	r := s.asks(q)
	e, ok := r.Enhanced()
	s.want(ok && r.Rev() >= 2, "a Reply with S=1, of revision 2, with enhanced data", r)
	s.enter(q.Bytes(), r)
	if e.A {
		s.want(e.RTR() != 0, "at least one of B, C and D set with A=1", e)
		s.offered(q, e)
	}
	return e
}

// offered sends an RTR indication that the Reply names, if we offered it.
func (s *session) offered(q script.Startup, e mpa.Enhanced) {
	if both := e.RTR() & q.Enhanced.RTR(); both != 0 {
		s.sendRTR(both)
	}
}

func (s *session) checkDepths(q *mpa.Enhanced, r mpa.Enhanced) {
	if q.ORD == mpa.NoNegotiation {
		s.want(r.IRD == mpa.NoNegotiation, "IRD 0x3FFF in answer to ORD 0x3FFF", r)
	}
	if q.IRD == mpa.NoNegotiation {
		s.want(r.ORD == mpa.NoNegotiation, "ORD 0x3FFF in answer to IRD 0x3FFF", r)
		return
	}
	s.want(r.ORD <= q.IRD || r.ORD == mpa.NoNegotiation,
		fmt.Sprintf("an ORD of at most the Initiator's IRD, %d", q.IRD), r)
}

// models are sets of RTR indications beside A=1.
var models = [...]struct {
	name  string
	kinds mpa.RTR
}{
	{"write", mpa.RTRWrite},
	{"read", mpa.RTRRead},
	{"send", mpa.RTRSend},
	{"write-read", mpa.RTRWrite | mpa.RTRRead},
	{"all", mpa.RTRWrite | mpa.RTRRead | mpa.RTRSend},
	{"none", 0},
}

// requestModels try the connection models and RTR indications.
func requestModels() []Case {
	var cases []Case
	for _, m := range models {
		cases = append(cases, toResponder("negotiate/req-a1-"+m.name, "E07 E08", "RFC 6581 9.2",
			fmt.Sprintf("A Request with A=1 that offers %v as RTR indication gets a Reply with A=1 that names at least one.", m.kinds), func(s *session) {
				e := s.acceptEnhanced(s.withModel(mpa.Enhanced{}.WithRTR(m.kinds)))
				s.want(e.A, "A=1 in answer to A=1", e)
				s.expectNothing("the connection is established")
			}))
	}
	for _, m := range []struct {
		name string
		e    mpa.Enhanced
		text string
	}{
		{"a0", mpa.Enhanced{}, "A Request with A=0 gets a Reply with A, B, C and D all zero."},
		{"a0-bcd", mpa.Enhanced{B: true, C: true, D: true},
			"B, C and D are ignored with A=0: the Reply has all four zero."},
	} {
		cases = append(cases, toResponder("negotiate/req-"+m.name, "E07", "RFC 6581 9.2", m.text, func(s *session) {
			e := s.acceptEnhanced(s.withModel(m.e))
			s.want(!e.A, "A=0 in answer to A=0", e)
			s.want(!e.B && !e.C && !e.D, "B, C and D zero with A=0", fmt.Sprintf("B=%v C=%v D=%v", e.B, e.C, e.D))
		}))
	}
	return all(enhanced(), cases...)
}

func (s *session) withModel(e mpa.Enhanced) script.Startup {
	q := s.request()
	e.IRD, e.ORD = depth, depth
	q.Enhanced = &e
	return q
}

// zeroWrite returns the ULPDU of a zero-length RDMA Write, DDP version 1.
func zeroWrite() []byte {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, script.RTRSTag
	return h.Append(nil)
}

// requestReady look at who may send, and at the RTR indications.
func requestReady() []Case {
	cases := []Case{
		toResponder("rtr/req-silence", "Q11", framing,
			"The Responder sends no FPDU before it has received one.", func(s *session) {
				s.silentBeforeOpen("Responders MUST receive and validate at least one FPDU before sending any FPDUs or Markers")
			}).in(frames()...),
		toResponder("rtr/req-silence-a0", "Q11", framing,
			"In the client-server model, too, the Responder sends no FPDU before it has received one.",
			func(s *session) {
				s.asks(s.withModel(mpa.Enhanced{}))
				s.expectNothing("Responders MUST receive and validate at least one FPDU before sending any FPDUs or Markers")
			}),
		toResponder("rtr/req-write", "E09", "RFC 6581 9.2",
			"A zero-length Write is an RTR indication, which no consumer sees.",
			func(s *session) { s.readyBy(mpa.RTRWrite, 1) }),
		toResponder("rtr/req-write-stag-0", "E09 D23", "RFC 6581 9.2; RFC 5041 5.2",
			"The STag of a zero-length Write as RTR indication is not checked.",
			func(s *session) { s.readyBy(mpa.RTRWrite, 0) }),
		toResponder("rtr/req-read", "E09", "RFC 6581 9.2",
			"A zero-length Read as RTR indication is answered by a zero-length Response.",
			func(s *session) { s.readyBy(mpa.RTRRead, 1) }),
		toResponder("rtr/req-send", "E09", "RFC 6581 9.2",
			"A zero-length Send as RTR indication takes no receive of the consumer's.",
			func(s *session) { s.readyBy(mpa.RTRSend, 1) }),
		toResponder("rtr/req-at-once", "Q13 E09", "RFC 6581 9.2",
			"An RTR indication and the message after it are not overlooked where they arrive directly after the Reply.",
			func(s *session) {
				q := s.withModel(mpa.Enhanced{A: true, C: true})
				r := s.asks(q)
				if e, _ := r.Enhanced(); !e.C {
					s.notApplicable("the peer does not take a Write as RTR indication")
				}
				s.enter(q.Bytes(), r)
				s.sendFPDUAtOnce("RTR indication", zeroWrite())
				s.ping()
			}).withRping().unsafe("kernels that overlook the RTR indication crash when the connection ends"),
		toResponder("rtr/req-message", "E07 E12", "RFC 6581 9.2",
			"With A=0 the Initiator's first message opens the connection.", func(s *session) {
				s.setup(func() { s.accepted(s.withModel(mpa.Enhanced{})) })
				s.ping()
			}).withRping(),
		toResponder("rtr/req-rev-1-read", "P26", "RFC 5040 5.2.1",
			"A zero-length Read as first FPDU of revision 1, as some RNICs send it, is answered.", func(s *session) {
				s.setup(func() { s.initiate(s.request()) })
				s.readIfServed()
			}).in(mpa.DialectRFC5044),
	}
	return all(enhanced(), cases...)
}

// silentBeforeOpen looks whether a Responder is silent after its Reply, and opens the
// connection.
func (s *session) silentBeforeOpen(because string) {
	q := s.request()
	r := s.asks(q)
	s.expectNothing(because)
	s.open(q, r)
}

// readyBy opens a peer-to-peer connection with one kind of RTR indication.
func (s *session) readyBy(kind mpa.RTR, stag uint32) {
	q := s.withModel(mpa.Enhanced{}.WithRTR(kind))
	r := s.asks(q)
	answer, _ := r.Enhanced()
	if answer.RTR()&kind == 0 {
		s.notApplicable("the peer does not take %v as RTR indication: its Reply names %v", kind, answer.RTR())
	}
	s.enter(q.Bytes(), r)
	if kind == mpa.RTRWrite {
		s.sendTagged("RTR indication", rdmap.OpWrite, stag, 0, nil)
	} else {
		s.sendRTR(kind)
	}
	s.works()
}

// requestData look at the FPDUs that a Responder sends.
func requestData() []Case {
	cases := []Case{
		reads("negotiate/req-m-markers", "F07 F08 F11 Q04", "RFC 5044 4.3",
			"With M in the Request the Responder's FPDUs have markers, the first before the first FPDU.",
			func(q *script.Startup) { q.M = true }),
		reads("negotiate/req-m-none", "F11 Q04", "RFC 5044 4.3",
			"Without M in the Request the Responder's FPDUs have no markers.",
			func(q *script.Startup) { q.M = false }).in(rfcs()...),
		reads("negotiate/req-c-crc", "F04 F14", "RFC 5044 4.4",
			"With C in the Request the Responder's FPDUs have CRCs.", func(q *script.Startup) { q.C = true }),
		reads("negotiate/req-no-c-crc", "F05 F14", "RFC 5044 4.4",
			"Without C in the Request the Reply's C decides on CRCs.", func(q *script.Startup) { q.C = false }),
	}
	return all(frames(), cases...)
}

// manyReads is how many zero-length Responses take more than 512 bytes.
const manyReads = 30

// reads returns a case that looks at a Responder's FPDUs after an adjusted Request.
func reads(id, requirements, section, text string, adjust func(q *script.Startup)) Case {
	return toResponder(id, requirements, section, text, func(s *session) { s.readsWith(adjust) })
}

// readsWith reads nothing many times over, to see the Responder's FPDUs.
func (s *session) readsWith(adjust func(*script.Startup)) {
	q := s.request()
	adjust(&q)
	s.setup(func() { s.initiate(q) })
	for range manyReads {
		s.readIfServed()
	}
}

// readIfServed is sendReadNothing for a peer that may take no Reads, as its IRD may be 0.
func (s *session) readIfServed() {
	s.sendReadNothing("zero-length Read")
	if s.look(s.opts.Timeout) != sightBytes {
		s.inconclusive("the peer does not answer a zero-length Read")
	}
	seg := s.segment("a zero-length Read Response")
	if rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate {
		s.inconclusive("the peer does not serve a zero-length Read: %s", script.DescribeSegment(&seg))
	}
	want := rdmap.OpReadResponse.Header(s.terms().Version)
	want.Last, want.STag = true, script.RTRSTag
	s.want(seg.Header == want && len(seg.Payload) == 0, "a zero-length Read Response", script.DescribeSegment(&seg))
}
