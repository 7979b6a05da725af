package conform

import (
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

func quote(s string) string { return strconv.Quote(s) }

// Setup runs steps that are not what the case is about: where the peer fails one,
// the case is inconclusive.
func (s *Session) Setup(steps func()) {
	defer func() {
		switch o := recover().(type) {
		case nil:
		case outcome:
			if o.verdict == Fail {
				o = outcome{Inconclusive, "the dialogue did not get that far: expected " + o.expected + ", got " + o.got, "", ""}
			}
			panic(o)
		default:
			panic(o)
		}
	}()
	steps()
}

// Establish brings up a connection in the Session's dialect, up to and with the RTR
// indication, as Setup: what follows are the ULP's messages.
func (s *Session) Establish() {
	s.Setup(func() {
		switch {
		case s.Dialect() == mpa.DialectStartKey:
			s.establishKeys(mpa.StartKeyFields{C: true})
		case s.Role() == mpa.RoleResponder:
			s.Initiate(s.Request())
		default:
			q := s.PeerRequest()
			s.Respond(q, s.Reply(q))
		}
	})
}

func (s *Session) establishKeys(ours mpa.StartKeyFields) {
	if s.Role() == mpa.RoleInitiator {
		peer := s.PeerKey("the Initiator's Start Key")
		s.EnterKeys(s.SendKey("our Start Key", ours), peer)
		return
	}
	key := s.SendKey("our Start Key", ours)
	s.EnterKeys(key, s.PeerKey("the Responder's Start Key"))
}

// Initiate sends a Request to a Responder, which must accept it, begins Full
// Operation, and opens it with the RTR indication or the Rtr frame where the Reply
// wants one. It returns the Reply.
func (s *Session) Initiate(q Startup) mpa.StartupFrame {
	s.Send("Request", q.Octets())
	r := s.PeerAccepts("the Request is an ordinary one")
	s.Enter(q.Octets(), r)
	s.ready(r)
	return r
}

// ready sends what a Reply waits for: the RTR indication or the Rtr frame.
func (s *Session) ready(r mpa.StartupFrame) {
	switch e, enhanced := r.Enhanced(); {
	case enhanced && e.A:
		s.SendReady(e.RTR())
		if !s.sawReady(&e) {
			s.readyAgain()
		}
	case s.Dialect() == mpa.DialectRtr && r.S():
		s.Send("Rtr frame", rtrFrame(r).Octets())
	}
}

// sawReady waits until the peer has seen an RTR indication that has no answer of its
// own, by a zero-length Read: an FPDU in error that is read together with the
// indication crashes Linux's siw. A silent peer may have overlooked what came before
// it had put its Reply into effect, and hears one more. It returns false if the peer
// does not answer as it should, which is not what the case is about.
func (s *Session) sawReady(e *mpa.Enhanced) bool {
	switch kinds := e.RTR(); {
	case kinds&mpa.RTRWrite == 0 && kinds&mpa.RTRRead != 0:
		return true
	case e.IRD == 0: // it takes no Reads
		time.Sleep(settling)
		return true
	}
	return s.succeeds(func() {
		s.sendReadNothing("zero-length Read Request behind it")
		for until := time.Now().Add(s.opts.Timeout); s.look(settling) == sightNothing && time.Now().Before(until); {
			s.SendTagged("empty Write, as nothing comes", rdmap.OpWrite, rtrSTag, 0, nil)
		}
		s.peerReadNothing()
	})
}

// readyAgain does the startup once more on a new connection, for a peer of which only
// time can tell that it has seen the RTR indication.
func (s *Session) readyAgain() {
	q := s.link.asked
	s.Reconnect()
	s.Send("Request again", q)
	r := s.PeerAccepts("the Request is the same")
	s.Enter(q, r)
	e, _ := r.Enhanced()
	s.SendReady(e.RTR())
	time.Sleep(settling)
}

// succeeds runs steps and reports whether the peer plays its part in them.
func (s *Session) succeeds(steps func()) (ok bool) {
	defer func() {
		if end := recover(); end != nil {
			o, left := end.(outcome)
			if !left {
				panic(end)
			}
			s.Notef("left: expected %s, got %s", o.expected, o.got)
		}
	}()
	steps()
	return true
}

// rtrFrame returns the Rtr frame that follows a Reply. [T02] [T05]
func rtrFrame(r mpa.StartupFrame) Startup {
	return Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRtr, C: r.C(), Rev: 1}}
}

// rtrSTag is the STag of our RTR indications: some RNICs refuse 0.
const rtrSTag = 1

// SendReady sends an RTR indication, of the first kind in the order Write, Read,
// Send of those given, and takes the answer if it has one.
func (s *Session) SendReady(kinds mpa.RTR) {
	s.Want(kinds != 0, "a Reply with A=1 that names an RTR indication (B, C or D)", "none")
	if s.sendReady("RTR indication", kinds) == mpa.RTRRead {
		s.peerReadNothing()
	}
}

// sendReady sends an RTR indication and returns its kind.
func (s *Session) sendReady(text string, kinds mpa.RTR) mpa.RTR {
	switch {
	case kinds&mpa.RTRWrite != 0:
		s.SendTagged(text, rdmap.OpWrite, rtrSTag, 0, nil)
		return mpa.RTRWrite
	case kinds&mpa.RTRRead != 0:
		s.sendReadNothing(text)
		return mpa.RTRRead
	}
	s.SendMessage(text, rdmap.OpSend, nil)
	return mpa.RTRSend
}

// ReadNothing sends a zero-length Read Request and waits for its Response.
func (s *Session) ReadNothing(text string) {
	s.sendReadNothing(text)
	s.peerReadNothing()
}

func (s *Session) sendReadNothing(text string) {
	r := rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag}
	s.SendMessage(text, rdmap.OpReadRequest, r.Append(nil))
}

func (s *Session) peerReadNothing() {
	m := s.Message(rdmap.OpReadResponse, "the zero-length Response to a zero-length Read Request")
	s.Want(m.Header.STag == rtrSTag && len(m.Payload) == 0, "a Read Response of no octets, for the Request's STag", m.Header)
}

// Respond answers an Initiator's Request, begins Full Operation, and waits for the
// RTR indication or the Rtr frame that the Reply has asked for.
func (s *Session) Respond(q mpa.StartupFrame, f Startup) {
	b := f.Octets()
	s.Send("Reply", b)
	r := mpa.StartupFrame(b)
	if s.Dialect() == mpa.DialectRtr && f.S {
		s.PeerRtrFrame(r)
	}
	s.Enter(q, r)
	if e, enhanced := r.Enhanced(); enhanced && e.A {
		s.PeerReady(e.RTR())
	}
}

// PeerRtrFrame waits for the Rtr frame. [T02] [T05]
func (s *Session) PeerRtrFrame(r mpa.StartupFrame) mpa.StartupFrame {
	f := s.Frame("the Rtr frame")
	s.Want(f.Key() == mpa.KeyRtr, "the key "+quote(mpa.KeyRtr), quote(f.Key()))
	s.Want(f.C() == r.C(), "an Rtr frame with the Reply's C", f)
	return f
}

// PeerReady waits for an RTR indication of one of the kinds, and answers it if it is
// a Read. It returns the kind.
func (s *Session) PeerReady(kinds mpa.RTR) mpa.RTR {
	expected := "an RTR indication: " + kinds.String()
	seg := s.Segment(expected)
	kind := map[rdmap.Opcode]mpa.RTR{
		rdmap.OpWrite: mpa.RTRWrite, rdmap.OpReadRequest: mpa.RTRRead, rdmap.OpSend: mpa.RTRSend,
	}[rdmap.OpcodeOf(&seg.Header)]
	s.Want(kinds&kind != 0 && seg.Last, expected, describeSegment(&seg))
	s.checkFirst(&seg, expected)
	if kind != mpa.RTRRead {
		s.Want(len(seg.Payload) == 0, "an RTR indication of no octets", describeSegment(&seg))
		return kind
	}
	r, err := rdmap.ParseReadRequest(seg.Payload)
	s.Want(err == nil && r.Size == 0, "a zero-length Read Request", describeSegment(&seg))
	s.SendTagged("Response to it", rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, nil)
	return kind
}
