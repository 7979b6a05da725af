package conform

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// open begins Full Operation after Request and Reply, opens it with the RTR
// indication or the Rtr frame, and sees that the connection stays open.
func (s *session) open(q script.Startup, r mpa.StartupFrame) {
	s.enter(q.Bytes(), r)
	s.ready(r)
	s.expectNothing("the connection is established, and nothing was asked of the peer")
}

// accept sends a Request that must be accepted, and opens the connection.
func (s *session) accept(q script.Startup, because string) mpa.StartupFrame {
	s.send("Request", q.Bytes())
	r := s.peerTakes(q, because)
	s.open(q, r)
	return r
}

// again sees that the peer still takes connections.
func (s *session) stillAccepts() {
	s.reconnect()
	s.accept(s.request(), "the peer still takes ordinary Requests")
}

const framing = "RFC 5044 7.1.2"

func requestFraming() []Case {
	cases := []Case{
		toResponder("startup/req-whole", "Q01 Q09", framing,
			"A Request in one write is answered by a well-formed Reply.", requestWhole),
		toResponder("startup/req-waits", "Q09", framing,
			"The Responder sends nothing before it has a Request.", func(s *session) {
				s.expectNothing("it MUST wait until a Request is received")
				s.accept(s.request(), "the Request is an ordinary one")
			}),
		toResponder("startup/req-bytes", "Q13 Q14", framing,
			"A Request that comes byte by byte is accepted.", func(s *session) {
				q := s.withText(3)
				if e := q.Enhanced; e != nil { // siw may never answer, and not survive that where A=1
					e.A, e.B, e.C, e.D = false, false, false, false
				}
				s.sendEach("Request", q.Bytes())
				s.open(q, s.peerTakes(q, "segmentation has no meaning"))
			}),
		toResponder("startup/req-pd-waits", "Q08 Q13", framing,
			"The Reply waits for the last byte of Private Data.", requestLate),
		toResponder("startup/req-pipelined", "Q13", framing,
			"An FPDU in one segment with the Request, which is not allowed, is taken as such or closes the connection.",
			requestPipelined).in(rfcs()...),
	}
	for _, at := range splits {
		cases = append(cases, toResponder("startup/req-split-"+at.name, "Q13 Q14", framing,
			"A Request that is split "+at.text+" is accepted.", func(s *session) {
				q := s.withText(8)
				b := q.Bytes()
				s.sendSplit("Request", b[:at.byte], b[at.byte:])
				s.open(q, s.peerTakes(q, "segmentation has no meaning"))
			}))
	}
	return all(frames(), cases...)
}

// splits are the places at which a startup frame is split.
var splits = [...]struct {
	name string
	byte int
	text string
}{
	{"key", 8, "within its key"}, {"after-key", 16, "after its key"}, {"header", 19, "within PD_Length"},
	{"after-header", 20, "after its header"}, {"pd", 26, "within its Private Data"},
}

// sendLate sends a frame whose last byte comes late: nothing happens before.
func (s *session) sendLate(text string, b []byte) {
	s.send(text+" without its last byte", b[:len(b)-1])
	s.expectNothing("the Private Data is not whole")
	s.send("its last byte", b[len(b)-1:])
}

// withText returns a Request with n bytes of private data of the ULP.
func (s *session) withText(n int) script.Startup {
	q := s.request()
	q.ULP = text(n)
	return q
}

func requestWhole(s *session) {
	q := s.request()
	r := s.asks(q)
	s.wellFormed(q, r)
	s.open(q, r)
}

// wellFormed looks at what is the same in accepting and rejecting Replies.
func (s *session) wellFormed(q script.Startup, r mpa.StartupFrame) {
	s.want(r.Res() == 0, "a Reply whose reserved bits are zero", r)
	want := []uint8{q.Rev}
	if s.dialect() == mpa.DialectRFC5044 {
		want = append(want, 0) // of an RDMAC RNIC, which answers so
	}
	s.want(slices.Contains(want, r.Rev()), "a Reply of the Request's revision", r)
}

func requestLate(s *session) {
	q := s.withText(8)
	s.sendLate("Request", q.Bytes())
	s.open(q, s.peerTakes(q, "the Request is whole now"))
}

func requestPipelined(s *session) {
	q := s.request()
	w := mpa.NewWriter(false, true)
	s.send("Request and FPDU", q.Bytes(), w.Append(nil, zeroWrite()))
	if s.look(s.opts.Timeout) == sightEnd {
		return
	}
	r := s.peerReply("a Reply, or the connection closed")
	if r.M() {
		s.notApplicable("the Reply asks for markers, and the FPDU was sent without")
	}
	if !r.R() {
		s.enter(q.Bytes(), r)
		s.expectNothing("the FPDU was a zero-length Write")
	}
}

// requestKeys are first frames that are no Request.
func requestKeys() []Case {
	var cases []Case
	for _, k := range wrongKeys(mpa.KeyRequest, mpa.KeyReply) {
		cases = append(cases, toResponder("startup/req-key-"+k.name, "Q02", "RFC 5044 7.1.1",
			"A first frame with "+k.text+" in place of the Request's key closes the connection.", func(s *session) {
				q := s.request()
				q.Key = k.key
				s.send("first frame", q.Bytes())
				s.expectClosed("it MUST close the connection if any other value is detected")
			}))
	}
	cases = append(cases,
		toResponder("startup/req-key-start", "Q02 K02", "RFC 5044 7.1.1",
			"A Start Key closes the connection, or is answered by one.", requestStartKey),
		notMPA("tls", "a TLS ClientHello", "\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03"+string(text(40))),
		notMPA("http", "an HTTP request", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
		notMPA("zeros", "a row of zero bytes", string(make([]byte, 64))),
	)
	return all(frames(), cases...)
}

func notMPA(name, what, data string) Case {
	return toResponder("startup/req-key-"+name, "Q02", "RFC 5044 7.1.1",
		"In place of a Request, "+what+" closes the connection.", func(s *session) {
			s.send(what, []byte(data))
			s.expectClosed("it MUST close the connection if any other value is detected")
		})
}

// wrongKey is a key that differs from the one that is due.
type wrongKey struct{ name, key, text string }

func wrongKeys(due, other string) []wrongKey {
	swap := func(i int, bit byte) string {
		b := []byte(due)
		b[i] ^= bit
		return string(b)
	}
	return []wrongKey{
		{"other", other, "the key of the other role"},
		{"first", swap(0, 0x01), "one wrong bit in the first byte"},
		{"bit", swap(7, 0x04), "one wrong bit"},
		{"last", swap(15, 0x80), "one wrong bit in the last byte"},
		{"case", swap(7, 0x20), "one lower-case letter"},
		{"rtr", mpa.KeyRtr, "the key of the Rtr frame of 2007"},
	}
}

func requestStartKey(s *session) {
	s.sendKey("Start Key", mpa.StartKeyFields{C: true})
	if s.look(s.quietTime()) == sightNothing {
		s.send("more, for a peer that waits for a Request's whole header", make([]byte, 8))
	}
	if s.look(s.opts.Timeout) == sightBytes {
		s.peerKey("a Start Key, or the connection closed")
		return
	}
	s.expectClosed("the peer does not know the Start Key")
}
