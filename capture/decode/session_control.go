package decode

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// control takes a session control message.
func (x *session) control(m *capture.Message, number, offset uint64) {
	c, err := sctp.ParseControl(m.Data)
	f := &Startup{
		Frame: FrameSession, Dir: m.Dir, Offset: offset, Size: m.Length, First: m.First, Last: m.Last,
		Bytes: bytes.Clone(m.Data),
	}
	var v *sctp.Violation
	if !errors.As(err, &v) {
		c.PrivateData = f.Bytes[len(f.Bytes)-len(c.PrivateData):]
		f.Control, f.PrivateData = &c, c.PrivateData
	}
	x.c.reportStartup(f)
	if len(m.Data) < m.Length {
		x.notCaptured(m, offset, m.Length-len(m.Data))
	} else if v != nil {
		x.unreadable(m, offset, v)
	}
	if x.patterns(f, c.Function, number); x.begun && x.asked == nil {
		x.asked = &capture.Message{TSN: m.TSN, Last: m.Last}
	}
}

// unreadable reports a session control message that breaks a rule by itself. [C02]
func (x *session) unreadable(m *capture.Message, offset uint64, v *sctp.Violation) {
	k := findSessionMessage
	x.unfit = x.unfit || !x.begun
	switch v.Rule {
	case sctp.RuleTerminateData, sctp.RulePrivateData, sctp.RuleEnhancedData:
		k = findSessionData
	}
	x.c.report(k, m.Dir, offset, m.Last, fmt.Sprintf("%v: %s (%s)", v.Rule, v.Reason, v.Rule.Section()),
		"the receiver ends the session")
}

const adviceInUse = "a stream is used again when both ends are done with it: choose another"

// patterns judges a session control message among the others, and acts on it: RFC 5043,
// sections 6.2 to 6.4. [C04]
func (x *session) patterns(f *Startup, fn sctp.Function, number uint64) {
	answers := x.begun && f.Dir != x.active && number == 0
	m := &capture.Message{Dir: f.Dir, Last: f.Last}
	switch kind := fn.Plain(); {
	case kind == sctp.FunctionInitiate && number == 0 && !x.begun && !x.pub().Midstream:
		x.initiate(f, fn)
	case kind == sctp.FunctionInitiate && answers:
		x.sequence(m, f.Offset, "both ends ask for a session on the same stream",
			"the two ends choose streams apart, even and odd ones, say")
	case kind == sctp.FunctionAccept && answers:
		x.accept(f, fn)
	case kind == sctp.FunctionReject && answers:
		x.reject(f, fn)
	case kind == sctp.FunctionTerminate && answers && !x.pub().Session.Terminated[x.active]:
		x.refuse(f)
	case kind == sctp.FunctionTerminate && (x.begun || x.pub().Midstream):
		x.terminated(f)
	case kind == sctp.FunctionInitiate && x.begun:
		x.c.report(findInUse, f.Dir, f.Offset, f.Last,
			fmt.Sprintf("%v on a stream whose session is open", fn), adviceInUse)
	case kind == 0 || kind > sctp.FunctionTerminate: // it is reported as unknown
		if number == 0 && !x.begun && !x.pub().Midstream {
			x.begun, x.active, x.pub().Initiator = true, f.Dir, f.Dir // what answers it is an answer
		}
	default:
		x.sequence(m, f.Offset, fmt.Sprintf("%v as message %d of the %s end", fn, number+1, x.role(f.Dir)),
			"an Initiate, its answer, DDP Segments, a Terminate: nothing else is a session")
	}
}

func (x *session) role(d capture.Dir) string {
	if !x.begun {
		return "first"
	}
	return wording.If(d == x.active, "active", "passive")
}

// initiate begins a session.
func (x *session) initiate(f *Startup, fn sctp.Function) {
	p := x.pub()
	x.begun, x.active = true, f.Dir
	p.Initiator, p.Dialect = f.Dir, mpa.DialectRFC5044
	p.Startups++
	x.note(f)
	if fn.IsEnhanced() {
		p.Dialect = mpa.DialectRFC6581
		if f.Control != nil {
			x.c.judgeFlags(f, &f.Control.Enhanced, true)
		}
	}
}

// note keeps what a message says for the summary.
func (x *session) note(f *Startup) {
	p := x.pub()
	if len(f.PrivateData) > 0 {
		p.PrivateData[f.Dir] = f.PrivateData
	}
	if f.Control != nil && f.Control.HasEnhanced() {
		p.Enhanced[f.Dir] = &f.Control.Enhanced
	}
}

// accept opens a session.
func (x *session) accept(f *Startup, fn sctp.Function) {
	p := x.pub()
	x.answer, p.Agreed = true, true
	x.note(f)
	x.kind(f, fn)
	q, a := p.Enhanced[x.active], p.Enhanced[f.Dir]
	if q == nil || a == nil {
		return
	}
	x.c.judgeFlags(f, a, false)
	x.c.judgeDepths(f, q, a)
	x.c.judgeModel(f, q, a)
	p.RTR.PeerToPeer = q.A || a.A
	p.RTR.Offered, p.RTR.Answered = q.RTR(), a.RTR()
}

// kind judges whether an answer is of the kind of the Initiate.
//
// RFC 6581, section 10: an enhanced responder "MUST respond with an enhanced" answer to an enhanced request. [C01]
func (x *session) kind(f *Startup, fn sctp.Function) {
	if enhanced := x.pub().Dialect == mpa.DialectRFC6581; enhanced != fn.IsEnhanced() {
		x.c.report(findAnswerKind, f.Dir, f.Offset, f.Last,
			fmt.Sprintf("%v in answer to an %s", fn,
				wording.If(enhanced, "Enhanced Initiate", "Initiate without enhanced data")),
			"an enhanced Initiate has an enhanced answer, and a plain one a plain answer")
	}
}

// reject takes note that the passive end's consumer does not want the session.
func (x *session) reject(f *Startup, fn sctp.Function) {
	x.answer, x.over, x.pub().Rejected = true, true, true
	x.sides[f.Dir].last = f.Last
	x.note(f)
	x.kind(f, fn)
	text := "the passive end has rejected the session, without private data"
	if len(f.PrivateData) > 0 {
		text = "the passive end has rejected the session, with private data: " + ulpdata.Describe(f.PrivateData)
	}
	x.c.report(findSessionRejected, f.Dir, f.Offset, f.Last, text, "")
}

// refuse takes note that the passive end has answered with a Terminate.
//
// RFC 5043, section 6.4: "When more session requests are received, the passive side MUST respond to the Initiate
// message with a DDP Stream Terminate Message." [C07]
func (x *session) refuse(f *Startup) {
	x.answer, x.over = true, true
	p := x.pub()
	p.Session.Refused = true
	p.Session.Terminated[f.Dir] = true
	x.sides[f.Dir].last = f.Last
	advice := "nobody listens for sessions there, or too many requests wait"
	if x.unfit {
		advice = "what asked for it is no Initiate that is whole"
	} else if p.Dialect == mpa.DialectRFC6581 {
		advice += ", or it does not know RFC 6581: try a plain Initiate"
	}
	x.c.report(findSessionRefused, f.Dir, f.Offset, f.Last,
		"the passive end's provider has refused the session", advice)
}

// terminated takes note of a Terminate. With those of both ends the session is over.
func (x *session) terminated(f *Startup) {
	t := &x.pub().Session.Terminated
	if !t[f.Dir] {
		x.sides[f.Dir].last = f.Last
	}
	t[f.Dir] = true
	x.over = t[0] && t[1]
}

// enhancedAt returns the stream offset of the enhanced data of a frame.
func (s *Startup) enhancedAt() uint64 {
	if s.Frame == FrameSession {
		return s.Offset + 4
	}
	return s.Offset + mpa.StartupHeaderLen
}

// streamsText says how many streams an INIT or INIT ACK asks for.
func streamsText(p *capture.Setup) string {
	return fmt.Sprintf("%d streams are asked for out, and %d in", p.Out, p.In)
}

// indicationText says what an INIT or INIT ACK has in place of the indication of DDP.
func indicationText(p *capture.Setup) string {
	if !p.HasAdaptation {
		return "no Adaptation Layer Indication in an association that carries DDP"
	}
	return fmt.Sprintf("Adaptation Layer Indication %#x, where DDP has %d", p.Adaptation, sctp.AdaptationDDP)
}
