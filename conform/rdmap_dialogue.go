package conform

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A dialogue is a Session in Full Operation, at the point where a ping of rping
// begins: both sides may send.
type dialogue struct {
	*Session
	source     Advert // what an Initiator has told us of first
	looksAtPad bool   // in exchange
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

func operating(run func(*dialogue)) func(*Session) {
	return func(s *Session) {
		defer s.excuse()
		run(s.begin())
	}
}

// excuse makes a failure inconclusive where the startup does not agree on Reads, and
// the peer has none: an ordinary dialogue, which needs them, does not work either.
func (s *Session) excuse() {
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
func (s *Session) agreedReads() bool {
	if s.Dialect() != mpa.DialectRFC6581 {
		return false
	}
	if s.link == nil || s.link.reply == nil {
		return true
	}
	e, enhanced := s.link.reply.Enhanced()
	return enhanced && e.IRD > 0
}

// ordinary is a dialogue with which nothing is wrong.
func (s *Session) ordinary() {
	s.Notef("does an ordinary dialogue work?")
	s.Reconnect()
	d := s.begin()
	d.SendFPDU("zero-length Read Request", d.emptyRead())
	d.answersRead()
	d.works()
}

// begin establishes the connection, and has both sides free to send: a Responder by
// the RTR indication, the Rtr frame or an empty Write, and an Initiator by its first
// advert.
func (s *Session) begin() *dialogue { return s.beginWith(s.Dialect() == mpa.DialectRevision0, true) }

// beginWith is begin with M and C of our startup frame.
func (s *Session) beginWith(m, c bool) *dialogue {
	d := &dialogue{Session: s}
	s.Setup(func() {
		d.establish(m, c)
		switch {
		case s.Role() == mpa.RoleInitiator:
			d.source = s.PeerAdvert("the client's source advert")
		case s.Dialect() != mpa.DialectRFC6581 && s.Dialect() != mpa.DialectRtr:
			s.SendTagged("empty Write", rdmap.OpWrite, rtrSTag, 0, nil)
		}
	})
	return d
}

func (d *dialogue) establish(m, c bool) {
	switch {
	case d.Dialect() == mpa.DialectStartKey:
		d.establishKeys(mpa.StartKeyFields{M: m, C: c})
	case d.Role() == mpa.RoleResponder:
		q := d.Request()
		q.M, q.C = m, c
		d.Send("Request", q.Octets())
		r := d.PeerReply("a Reply")
		if r.R() {
			d.NotApplicable("the peer rejects M=%v C=%v", m, c)
		}
		d.Enter(q.Octets(), r)
		d.ready(r)
	default:
		q := d.PeerRequest()
		f := d.Reply(q)
		f.M, f.C = m, c
		d.Respond(q, f)
	}
}

// works proves that the connection works, by what is left of the ping.
func (d *dialogue) works() {
	if d.Role() == mpa.RoleResponder {
		d.Works()
		return
	}
	d.ReadSourceAll()
	d.finish(d.goAhead())
}

// ReadSourceAll reads what the client's first advert tells of.
func (d *dialogue) ReadSourceAll() { d.ReadSource(d.source) }

// goAhead has a client tell of its sink.
func (d *dialogue) goAhead() Advert {
	d.SendAdvert("go ahead", Advert{})
	return d.PeerAdvert("the client's sink advert")
}

// finish writes the text into a client's sink, and sees that it is content: it goes
// on with its next ping, or closes.
func (d *dialogue) finish(sink Advert) {
	d.SendTagged("the text back", rdmap.OpWrite, sink.STag, sink.TO, PingText()[:min(len(PingText()), int(sink.Length))])
	d.SendAdvert("go ahead", Advert{})
	d.content()
}

// content sees that a client goes on behind our last go ahead, or closes.
func (d *dialogue) content() {
	if d.look(d.opts.Timeout) == sightOctets {
		d.PeerAdvert("the advert of its next ping, or the connection closed")
	}
}

// probeSTag is the sink of Reads whose Responses are not to be mistaken for others.
const probeSTag = 0x00c0ff03

// emptyRead returns the ULPDU of a zero-length Read Request, with the next MSN.
func (d *dialogue) emptyRead() []byte {
	return d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag, SrcSTag: rtrSTag})
}

func (d *dialogue) readULPDU(r rdmap.ReadRequest) []byte {
	h := d.Header(rdmap.OpReadRequest)
	return append(h.Append(nil), r.Append(nil)...)
}

// emptyWrite returns the ULPDU of a zero-length Write.
func (d *dialogue) emptyWrite() []byte {
	h := d.Header(rdmap.OpWrite)
	h.STag = rtrSTag
	return h.Append(nil)
}

// answersRead waits for the Response to an emptyRead.
func (d *dialogue) answersRead() {
	m := d.Message(rdmap.OpReadResponse, "the zero-length Response to a zero-length Read Request")
	d.Want(m.Header.STag == probeSTag && m.Header.TO == 0 && len(m.Payload) == 0, "a Read Response of no octets, for the Request's sink STag and TO", m.Header)
}

// sendOctets sends octets that were framed before, and perhaps spoiled.
func (d *dialogue) sendOctets(text string, b ...[]byte) {
	d.use().fpdus++
	d.Send(text, b...)
}

// lenience is what a peer may do about an error beside sending a Terminate.
type lenience uint8

const (
	// tells: RFC 5040, Section 7.1: "The Local Peer MUST send a Terminate
	// Message" for errors on an incoming message.
	tells lenience = iota
	// orCloses: RFC 5040, Section 6.2.1: a Terminate "SHOULD be invoked when [...]
	// an LLP error is surfaced".
	orCloses
	// orDrops: RFC 5044, Section 8: "MAY choose to silently drop the TCP segment";
	// RFC 5041, Section 7.1: "MAY try to recover from the system fault using LLP
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
	expected := terminateText(codes) + [...]string{"", ", or the connection closed", ", the connection closed, or silence"}[l] + ": " + because
	until := time.Now().Add(d.opts.Timeout)
	for {
		switch d.look(time.Until(until)) {
		case sightEnd:
			d.Want(l >= orCloses, expected, "the connection "+d.link.end.String())
			return nil
		case sightNothing:
			d.Want(l == orDrops, expected, "nothing within "+d.opts.Timeout.String())
			return nil
		}
		seg := d.Segment(expected)
		switch rdmap.OpcodeOf(&seg.Header) {
		case rdmap.OpTerminate:
			return d.refusal(seg, expected, codes)
		case rdmap.OpReadResponse, rdmap.OpReadRequest: // it was taken
			d.Failf(expected, "%s", describeSegment(&seg))
		}
	}
}

func (d *dialogue) refusal(seg ddp.Segment, expected string, codes []rdmap.Code) *refusal {
	t, err := rdmap.ParseTerminate(seg.Payload)
	if err != nil {
		d.Failf(expected, "%v", err)
	}
	d.Want(len(codes) == 0 || slices.Contains(codes, t.Code), expected, t)
	if t.Layout != rdmap.LayoutRFC {
		d.Notef("the Terminate has the layout of %v", t.Layout)
	}
	d.isOver("After sending a Terminate Message [...] the Local Peer MUST NOT send any more Messages")
	return &refusal{t, seg}
}

// isOver sees that nothing more comes but the end of the connection. A peer may wait
// for our half of it to be closed first.
func (d *dialogue) isOver(because string) {
	expected := "nothing more, and the end of the connection: " + because
	for _, within := range []time.Duration{d.opts.Quiet, d.opts.Timeout} {
		switch d.look(within) {
		case sightOctets:
			d.leftover(d.link)
			d.Failf(expected, "%s", count(len(d.link.in)))
		case sightEnd:
			d.note(Checked, expected, nil)
			return
		}
		if within == d.opts.Quiet {
			d.CloseWrite()
		}
	}
	d.Failf(expected, "still open after %v", d.opts.Timeout)
}

// takenOr runs steps that go on where the peer takes something that the documents let
// it take or refuse; where it sends a Terminate, or closes, that is looked at instead.
func (d *dialogue) takenOr(because string, codes []rdmap.Code, taken func()) {
	if !d.terminates() {
		taken()
		return
	}
	d.refused(orCloses, because, codes...)
}

// terminates reports whether the peer's next FPDU is a Terminate, or it closes.
func (d *dialogue) terminates() bool {
	switch d.look(d.opts.Timeout) {
	case sightNothing:
		return false
	case sightEnd:
		return true
	}
	l, op := d.link, d.operating()
	until := time.Now().Add(d.opts.Timeout)
	for {
		r := op.r // looked at, and not taken
		f, n, err := r.Next(slices.Clone(l.in))
		if err != nil || n == 0 && (l.end != endNone || !d.more(l, until)) {
			return false
		}
		if n > 0 {
			seg, err := ddp.Parse(f.ULPDU)
			return err == nil && rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate
		}
	}
}

// lastFPDU returns the octets of the FPDU that the peer sent last, and where in the
// stream it begins.
func (d *dialogue) lastFPDU() (b []byte, offset uint64) {
	for _, e := range slices.Backward(d.log) {
		if e.Kind == Received {
			return e.Octets, d.operating().r.Offset() - uint64(len(e.Octets))
		}
	}
	panic(fmt.Sprintf("conform: %s: no FPDU received", d.c.ID))
}

// sets of codes which the documents let a peer choose from.
var (
	badSTag   = []rdmap.Code{rdmap.CodeDDPInvalidSTag, rdmap.CodeDDPSTagNotAssociated}
	badBounds = []rdmap.Code{rdmap.CodeDDPBaseOrBounds, rdmap.CodeDDPTOWrap}
	badMSN    = []rdmap.Code{rdmap.CodeDDPInvalidMSNNoBuffer, rdmap.CodeDDPInvalidMSNRange}
	badMO     = []rdmap.Code{rdmap.CodeDDPInvalidMO, rdmap.CodeDDPMessageTooLong}
	badOpcode = []rdmap.Code{rdmap.CodeUnexpectedOpcode, rdmap.CodeCatastrophicStream, rdmap.CodeRemoteOperationUnspecified}
	badSource = []rdmap.Code{rdmap.CodeInvalidSTag, rdmap.CodeSTagNotAssociated}
)
