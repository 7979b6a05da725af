package conform

import (
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A dialogue is a session in Full Operation, at the point where a ping of rping
// begins: both sides may send.
type dialogue struct {
	*session
	source     message.Advert // what an Initiator has advertised first
	looksAtPad bool           // in exchange
}

// toServer and toClient return a case for rping -s and for rping -c, which begins
// in Full Operation.
func toServer(id, requirements, section, text string, run func(*dialogue)) Case {
	return toResponder(id, requirements, section, text, operating(run)).withRping()
}

func toClient(id, requirements, section, text string, run func(*dialogue)) Case {
	return toInitiator(id, requirements, section, text, operating(run)).withRping()
}

// either returns a case for each role. The name is "group/what"; that for a Responder
// becomes "group/responder-what" and needs no application.
func either(group, name, requirements, section, text string, run func(*dialogue)) []Case {
	return []Case{
		toResponder(group+"/responder-"+name, requirements, section, text, operating(run)),
		toClient(group+"/initiator-"+name, requirements, section, text, run),
	}
}

// eitherRping is either for rping in both roles.
func eitherRping(group, name, requirements, section, text string, run func(*dialogue)) []Case {
	cases := either(group, name, requirements, section, text, run)
	cases[0] = cases[0].withRping()
	return cases
}

// unsafely marks cases that may harm the peer's system.
func unsafely(why string, cases []Case) []Case {
	for i := range cases {
		cases[i] = cases[i].unsafe(why)
	}
	return cases
}

func operating(run func(*dialogue)) func(*session) {
	return func(s *session) {
		defer s.excuse()
		run(s.startDialogue())
	}
}

// excuse makes a failure inconclusive where the startup does not agree on Reads, and
// the peer has none: an ordinary dialogue, which needs them, does not work either.
func (s *session) excuse() {
	end := recover()
	if end == nil {
		return
	}
	if o, left := end.(outcome); left && o.verdict == Fail && !s.agreedReads() && !s.succeeds(s.ordinary) {
		panic(outcome{verdict: Inconclusive, why: "the peer does not serve Reads, or has none, in this dialect; expected " + o.expected + ", got " + o.got})
	}
	panic(end)
}

// agreedReads reports whether the startup frames have said that there are Reads.
func (s *session) agreedReads() bool {
	if s.dialect() != mpa.DialectRFC6581 {
		return false
	}
	if s.link == nil || s.link.answered == nil {
		return true
	}
	e, enhanced := s.link.answered.Enhanced()
	return enhanced && e.IRD > 0
}

// ordinary is a dialogue with which nothing is wrong.
func (s *session) ordinary() {
	s.notef("does an ordinary dialogue work?")
	s.reconnect()
	d := s.startDialogue()
	d.sendFPDU("zero-length Read Request", d.emptyRead())
	d.answersRead()
	d.works()
}

// startDialogue establishes the connection, and has both sides free to send: a Responder by
// the RTR indication, the Rtr frame or an empty Write, and an Initiator by its first
// advert.
func (s *session) startDialogue() *dialogue {
	return s.startDialogueWith(s.dialect() == mpa.DialectRevision0, true)
}

// startDialogueWith is startDialogue with M and C of our startup frame.
func (s *session) startDialogueWith(m, c bool) *dialogue {
	d := &dialogue{session: s}
	s.setup(func() {
		d.establishWith(m, c)
		switch {
		case s.role() == mpa.RoleInitiator:
			d.source = s.peerAdvert("the client's source advert")
		case s.dialect() != mpa.DialectRFC6581 && s.dialect() != mpa.DialectRtr:
			s.sendTagged("empty Write", rdmap.OpWrite, script.RTRSTag, 0, nil)
		}
	})
	return d
}

func (d *dialogue) establishWith(m, c bool) {
	switch {
	case d.dialect() == mpa.DialectStartKey:
		d.establishKeys(mpa.StartKeyFields{M: m, C: c})
	case d.role() == mpa.RoleResponder:
		q := d.request()
		q.M, q.C = m, c
		d.send("Request", q.Bytes())
		r := d.peerReply("a Reply")
		if r.R() {
			d.notApplicable("the peer rejects M=%v C=%v", m, c)
		}
		d.enter(q.Bytes(), r)
		d.ready(r)
	default:
		q := d.peerRequest()
		f := d.replyTo(q)
		f.M, f.C = m, c
		d.respond(q, f)
	}
}

// works proves that the connection works, by what is left of the ping.
func (d *dialogue) works() {
	if d.role() == mpa.RoleResponder {
		d.session.works()
		return
	}
	d.readSourceAll()
	d.finish(d.goAhead())
}

// readSourceAll reads the buffer of the client's first advert.
func (d *dialogue) readSourceAll() { d.readSource(d.source) }

// goAhead has a client advertise its sink.
func (d *dialogue) goAhead() message.Advert {
	d.sendAdvert("go ahead", message.Advert{})
	return d.peerAdvert("the client's sink advert")
}

// finish writes the text into a client's sink, and sees that it is content: it goes
// on with its next ping, or closes.
func (d *dialogue) finish(sink message.Advert) {
	d.sendTagged("the text back", rdmap.OpWrite, sink.STag, sink.TO,
		pingText()[:min(len(pingText()), int(sink.Length))])
	d.sendAdvert("go ahead", message.Advert{})
	d.content()
}

// content sees that a client goes on after our last go ahead, or closes.
func (d *dialogue) content() {
	if d.look(d.opts.Timeout) == sightBytes {
		d.peerAdvert("the advert of its next ping, or the connection closed")
	}
}

// probeSTag is the sink of Reads whose Responses are not to be mistaken for others.
const probeSTag = 0x00c0ff03

// emptyRead returns the ULPDU of a zero-length Read Request, with the next MSN.
func (d *dialogue) emptyRead() []byte {
	return d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag, SrcSTag: script.RTRSTag})
}

func (d *dialogue) readULPDU(r rdmap.ReadRequest) []byte {
	h := d.nextHeader(rdmap.OpReadRequest)
	return append(h.Append(nil), r.Append(nil)...)
}

// emptyWrite returns the ULPDU of a zero-length Write.
func (d *dialogue) emptyWrite() []byte {
	h := d.nextHeader(rdmap.OpWrite)
	h.STag = script.RTRSTag
	return h.Append(nil)
}

// answersRead waits for the Response to an emptyRead.
func (d *dialogue) answersRead() {
	m := d.message(rdmap.OpReadResponse, "the zero-length Response to a zero-length Read Request")
	d.want(m.STag == probeSTag && m.TO == 0 && len(m.Payload) == 0,
		"a Read Response of no bytes, for the Request's sink STag and TO", m.Header)
}

// lenience is what a peer may do about an error beside sending a Terminate.
type lenience uint8

const (
	// tells: RFC 5040, section 7.1: "The Local Peer MUST send a Terminate
	// Message" for errors on an incoming message.
	tells lenience = iota
	// orCloses: RFC 5040, section 6.2.1: a Terminate "SHOULD be invoked when [...]
	// an LLP error is surfaced".
	orCloses
	// orDrops: RFC 5044, section 8: "MAY choose to silently drop the TCP segment";
	// RFC 5041, section 7.1: "MAY try to recover from the system fault using LLP
	// means", for lack of a buffer.
	orDrops
)

// refusal is the Terminate by which the peer has refused something; nil if it has
// done so otherwise.
type refusal struct {
	rdmap.Terminate
	seg ddp.Segment
}

// refuses waits for a Terminate with one of the codes, and for the end of the
// connection, with nothing in between: what is in error must have had no effect.
func (d *dialogue) refuses(because string, codes ...rdmap.Code) *refusal {
	return d.refused(tells, because, codes...)
}

func (d *dialogue) refused(l lenience, because string, codes ...rdmap.Code) *refusal {
	expected := terminateText(codes) + [...]string{"", ", or the connection closed",
		", the connection closed, or silence"}[l] + ": " + because
	until := time.Now().Add(d.opts.Timeout)
	for {
		switch d.look(time.Until(until)) {
		case sightEnd:
			d.want(l >= orCloses, expected, "the connection "+d.link.End().String())
			return nil
		case sightNothing:
			d.want(l == orDrops, expected, "nothing within "+d.opts.Timeout.String())
			return nil
		}
		seg := d.segment(expected)
		switch rdmap.OpcodeOf(&seg.Header) {
		case rdmap.OpTerminate:
			return d.refusal(seg, expected, codes)
		case rdmap.OpReadResponse, rdmap.OpReadRequest: // it was taken
			d.failf(expected, "%s", script.DescribeSegment(&seg))
		}
	}
}

func (d *dialogue) refusal(seg ddp.Segment, expected string, codes []rdmap.Code) *refusal {
	t := d.terminate(&seg, expected, codes)
	d.isOver("After sending a Terminate Message [...] the Local Peer MUST NOT send any more Messages")
	return &refusal{*t, seg}
}

// isOver sees that nothing more comes but the end of the connection. A peer may wait
// for our half of it to be closed first.
func (d *dialogue) isOver(because string) {
	expected := "nothing more, and the end of the connection: " + because
	for n, within := range []time.Duration{d.quietTime(), d.opts.Timeout} {
		switch d.look(within) {
		case sightBytes:
			d.unexpected(d.link, expected)
		case sightEnd:
			d.note(Checked, expected, nil)
			return
		}
		if n == 0 {
			d.closeWrite()
		}
	}
	d.failf(expected, "still open after %v", d.opts.Timeout)
}

// mayRefuse runs steps that go on where the peer takes something that the documents let
// it take or refuse; where it sends a Terminate, or closes, that is looked at instead.
func (d *dialogue) mayRefuse(because string, codes []rdmap.Code, taken func()) {
	if !d.terminates() {
		taken()
		return
	}
	d.refused(orCloses, because, codes...)
}

// terminates reports whether the peer's next FPDU is a Terminate, or it closes.
func (s *session) terminates() bool {
	switch s.look(s.opts.Timeout) {
	case sightNothing:
		return false
	case sightEnd:
		return true
	}
	f, err := s.operating().PeekFPDU(s.deadline())
	if err != nil {
		return false
	}
	seg, err := ddp.Parse(f.ULPDU)
	return err == nil && rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate
}

// sets of codes which the documents let a peer choose from.
var (
	badSTag   = []rdmap.Code{rdmap.CodeDDPInvalidSTag, rdmap.CodeDDPSTagNotAssociated}
	badBounds = []rdmap.Code{rdmap.CodeDDPBaseOrBounds, rdmap.CodeDDPTOWrap}
	badMSN    = []rdmap.Code{rdmap.CodeDDPInvalidMSNNoBuffer, rdmap.CodeDDPInvalidMSNRange}
	badMO     = []rdmap.Code{rdmap.CodeDDPInvalidMO, rdmap.CodeDDPMessageTooLong}
	badOpcode = []rdmap.Code{rdmap.CodeUnexpectedOpcode, rdmap.CodeCatastrophicStream,
		rdmap.CodeRemoteOperationUnspecified}
	badSource = []rdmap.Code{rdmap.CodeInvalidSTag, rdmap.CodeSTagNotAssociated}
)
