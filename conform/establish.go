package conform

import (
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// setup runs steps that are not what the case is about: where the peer fails one,
// the case is inconclusive.
func (s *session) setup(steps func()) {
	defer func() {
		switch o := recover().(type) {
		case nil:
		case outcome:
			if o.verdict == Fail {
				o = outcome{verdict: Inconclusive,
					why: "the dialogue did not get that far: expected " + o.expected + ", got " + o.got}
			}
			panic(o)
		default:
			panic(o)
		}
	}()
	steps()
}

// establish brings up a connection as setup: what follows are the ULP's messages.
func (s *session) establish() { s.setup(s.bringUp) }

// bringUp brings up a connection in the session's dialect, up to and with the RTR
// indication.
func (s *session) bringUp() {
	switch {
	case s.dialect() == mpa.DialectStartKey:
		s.establishKeys(mpa.StartKeyFields{C: true})
	case s.role() == mpa.RoleResponder:
		s.initiate(s.request())
	default:
		q := s.peerRequest()
		s.respond(q, s.replyTo(q))
	}
}

func (s *session) establishKeys(ours mpa.StartKeyFields) {
	if s.role() == mpa.RoleInitiator {
		peer := s.peerKey("the Initiator's Start Key")
		s.enterKeys(s.sendKey("our Start Key", ours), peer)
		return
	}
	key := s.sendKey("our Start Key", ours)
	s.enterKeys(key, s.peerKey("the Responder's Start Key"))
}

// initiate sends a Request to a Responder, which must accept it, begins Full
// Operation, and opens it with the RTR indication or the Rtr frame where the Reply
// wants one.
func (s *session) initiate(q script.Startup) {
	s.ready(s.accepted(q))
}

// asks sends an ordinary Request, which must be accepted.
func (s *session) asks(q script.Startup) mpa.StartupFrame {
	s.send("Request", q.Bytes())
	return s.peerAccepts("the Request is an ordinary one")
}

// accepted is asks, and begins Full Operation.
func (s *session) accepted(q script.Startup) mpa.StartupFrame {
	r := s.asks(q)
	s.enter(q.Bytes(), r)
	return r
}

// ready sends what a Reply waits for: the RTR indication or the Rtr frame.
func (s *session) ready(r mpa.StartupFrame) {
	switch e, enhanced := r.Enhanced(); {
	case enhanced && e.A:
		s.sendRTR(e.RTR())
		if !s.sawReady(&e) {
			s.readyAgain()
		}
	case s.dialect() == mpa.DialectRtr && r.S():
		s.send("Rtr frame", script.RtrFrame(r).Bytes())
	}
}

// sawReady waits until the peer has seen an RTR indication that has no answer of its
// own, by a zero-length Read: an FPDU in error that is read together with the
// indication crashes Linux's siw. A silent peer may have overlooked what came before
// it had put its Reply into effect, and hears one more. It returns false if the peer
// does not answer as it should, which is not what the case is about.
func (s *session) sawReady(e *mpa.Enhanced) bool {
	switch kinds := e.RTR(); {
	case kinds&mpa.RTRWrite == 0 && kinds&mpa.RTRRead != 0:
		return true
	case e.IRD == 0: // it takes no Reads
		time.Sleep(settling)
		return true
	}
	return s.succeeds(func() {
		s.sendReadNothing("zero-length Read Request after it")
		for until := time.Now().Add(s.opts.Timeout); s.look(settling) == sightNothing && time.Now().Before(until); {
			s.sendTagged("empty Write, as nothing comes", rdmap.OpWrite, script.RTRSTag, 0, nil)
		}
		s.peerReadNothing()
	})
}

// readyAgain does the startup once more on a new connection, for a peer of which only
// time can tell that it has seen the RTR indication.
func (s *session) readyAgain() {
	q := s.link.asked
	s.reconnect()
	s.send("Request again", q)
	r := s.peerAccepts("the Request is the same")
	s.enter(q, r)
	e, _ := r.Enhanced()
	s.sendRTR(e.RTR())
	time.Sleep(settling)
}

// succeeds runs steps and reports whether the peer plays its part in them.
func (s *session) succeeds(steps func()) (ok bool) {
	defer func() {
		if end := recover(); end != nil {
			o, left := end.(outcome)
			if !left {
				panic(end)
			}
			s.notef("left: expected %s, got %s", o.expected, o.got)
		}
	}()
	steps()
	return true
}

// sendRTR sends an RTR indication of the first of the kinds, and takes the answer if it has one.
func (s *session) sendRTR(kinds mpa.RTR) {
	s.want(kinds != 0, "a Reply with A=1 that names an RTR indication (B, C or D)", "none")
	if s.sendIndication("RTR indication", kinds) == mpa.RTRRead {
		s.peerReadNothing()
	}
}

// sendIndication sends an RTR indication and returns its kind.
func (s *session) sendIndication(text string, kinds mpa.RTR) mpa.RTR {
	kind := script.First(kinds)
	switch kind {
	case mpa.RTRWrite:
		s.sendTagged(text, rdmap.OpWrite, script.RTRSTag, 0, nil)
	case mpa.RTRRead:
		s.sendReadNothing(text)
	case mpa.RTRSend:
		s.sendMessage(text, rdmap.OpSend, nil)
	}
	return kind
}

func (s *session) sendReadNothing(text string) {
	r := rdmap.ReadRequest{SinkSTag: script.RTRSTag, SrcSTag: script.RTRSTag}
	s.sendMessage(text, rdmap.OpReadRequest, r.Append(nil))
}

func (s *session) peerReadNothing() {
	m := s.message(rdmap.OpReadResponse, "the zero-length Response to a zero-length Read Request")
	s.want(m.STag == script.RTRSTag && len(m.Payload) == 0,
		"a Read Response of no bytes, for the Request's STag", m.Header)
}

// respond answers an Initiator's Request, begins Full Operation, and waits for the
// RTR indication or the Rtr frame that the Reply has asked for.
func (s *session) respond(q mpa.StartupFrame, f script.Startup) {
	s.send("Reply", f.Bytes())
	s.opened(q, f)
}

// opened begins Full Operation after our Reply, and waits for what it asks for. It
// reports whether that was an RTR indication.
func (s *session) opened(q mpa.StartupFrame, f script.Startup) bool {
	r := mpa.StartupFrame(f.Bytes())
	if s.dialect() == mpa.DialectRtr && f.S {
		s.peerRtrFrame(r)
	}
	s.enter(q, r)
	e, enhanced := r.Enhanced()
	if !enhanced || !e.A {
		return false
	}
	s.peerRTR(e.RTR())
	return true
}

// peerRtrFrame waits for the Rtr frame. [T02] [T05]
func (s *session) peerRtrFrame(r mpa.StartupFrame) mpa.StartupFrame {
	f := s.frame("the Rtr frame")
	s.want(f.Key() == mpa.KeyRtr, "the key "+strconv.Quote(mpa.KeyRtr), strconv.Quote(f.Key()))
	s.want(f.C() == r.C(), "an Rtr frame with the Reply's C", f)
	return f
}

// peerRTR waits for an RTR indication of one of the kinds, and answers it if it is
// a Read.
func (s *session) peerRTR(kinds mpa.RTR) {
	expected := "an RTR indication: " + kinds.String()
	seg := s.segment(expected)
	kind := mpa.RTROf(rdmap.ZeroLength(&seg))
	s.want(kinds&kind != 0, expected, script.DescribeSegment(&seg))
	s.checkFirst(&seg, expected)
	if kind == mpa.RTRRead {
		r, _ := rdmap.ParseReadRequest(seg.Payload)
		s.sendTagged("Response to it", rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, nil)
	}
}
