package conform

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// overSCTP returns a case for the passive end of DDP over SCTP: RFC 5043, and RFC 6581,
// section 7.
func overSCTP(id, requirements, section, text string, run func(*session)) Case {
	c := toResponder("sctp/"+id, requirements, section, text, run)
	c.sctp = true
	return c
}

// A ddpSession is a DDP session with the peer, on a stream of an association.
type ddpSession struct {
	*session
	*script.Session
	stream uint16
}

// associate opens an association. It reports false if the peer does not want it.
func (s *session) associate(ours chunk.Setup) bool {
	s.dissociate()
	err := s.openAssociation(ours)
	switch {
	case errors.Is(err, script.ErrRefused):
		s.note(Saw, err.Error(), nil)
		return false
	case err != nil:
		panic(outcome{verdict: Inconclusive, why: "no association with the peer: " + err.Error(), absent: err})
	}
	return true
}

func (s *session) openAssociation(ours chunk.Setup) (err error) {
	if l := s.opts.SCTPListener; l != nil {
		s.note(Did, "wait for an association with "+l.Addr().String()+indicated(&ours), nil)
		s.assoc, err = l.associate(s.ctx, ours, s.opts.Record)
		return err
	}
	d := net.Dialer{Timeout: s.opts.Timeout}
	conn, err := d.DialContext(s.ctx, "udp", s.opts.SCTP)
	if err == nil {
		s.note(Did, "association of "+conn.LocalAddr().String()+" and "+
			conn.RemoteAddr().String()+indicated(&ours), nil)
		began := time.Now()
		s.assoc, err = script.Associate(s.ctx, s.recorded(conn), ours, s.deadline())
		s.far(time.Since(began)) // two round trips
	}
	return err
}

func indicated(ours *chunk.Setup) string {
	switch {
	case !ours.HasAdaptation:
		return ", without indication"
	case !ours.Indicates(sctp.AdaptationDDP):
		return fmt.Sprintf(", with indication %d", ours.Adaptation)
	}
	return ""
}

// dissociate leaves the association.
func (s *session) dissociate() {
	if s.assoc != nil {
		s.assoc.Leave(s.deadline())
		s.assoc = nil
	}
}

// stream begins to speak on a stream, in the association there is or in a new one.
func (s *session) stream(id uint16) *ddpSession {
	if s.assoc == nil && !s.associate(script.DDPSetup()) {
		s.failf("an association: its INIT has the indication of DDP", "ABORT")
	}
	return &ddpSession{s, s.assoc.Session(id), id}
}

// say sends a message.
func (d *ddpSession) say(text string, m sctp.Message) {
	d.note(Sent, fmt.Sprintf("stream %d, PPID %d: %s, %s", m.Stream, m.PPID, text, wording.Bytes(len(m.Data))), m.Data)
	d.assoc.Send(m)
}

// hear waits for the next message of the session in the order of DDP-SSNs, and sees that it
// has the form of one. It reports false if none has come.
func (d *ddpSession) hear(within time.Duration) (m script.Message, ok bool) {
	m, ok = d.nextDue(time.Now().Add(within))
	if !ok {
		if end, why := d.assoc.End(); end != script.Open {
			d.note(Saw, "the association is ended"+wording.If(why != "", ": "+why, ""), nil)
		}
		return m, false
	}
	d.note(Received, fmt.Sprintf("stream %d, PPID %d: %s", m.Stream, m.PPID, wording.Bytes(len(m.Data))), m.Data)
	switch {
	case m.PPID != sctp.PPIDSegment && m.PPID != sctp.PPIDControl:
		d.failf("PPID 16 or 17", "PPID %d", m.PPID)
	case m.Ordered:
		d.failf("the U flag in every DATA chunk", "an ordered message")
	case m.Stream != d.stream:
		d.failf(fmt.Sprintf("a message on stream %d", d.stream), "one on stream %d", m.Stream)
	case len(m.Data) < sctp.SSNLen:
		d.failf("a DDP-SSN", "%s", wording.Bytes(len(m.Data)))
	case m.Chunks > 1 && len(m.Data) < script.MinFragmented:
		d.failf("a message of this size in one DATA chunk", "%s", wording.Count(m.Chunks, "chunk"))
	}
	return m, true
}

// nextDue is Next, without a Terminate that comes after the quiet time of refusedOr.
func (d *ddpSession) nextDue(until time.Time) (m script.Message, ok bool) {
	m, ok = d.Next(until)
	if !ok || d.silent == nil || m.Stream != d.silent.stream || m.Stream == d.stream || !isTerminate(&m) {
		return m, ok
	}
	d.silent = nil
	d.note(Received, fmt.Sprintf("stream %d: Terminate, late", m.Stream), m.Data)
	return d.Next(until)
}

// control waits for a session control message. Segments before it are passed over if skip is
// set.
func (d *ddpSession) control(expected string, skip bool) sctp.Control {
	for until := d.deadline(); ; {
		m, ok := d.hear(time.Until(until))
		switch {
		case !ok:
			d.failf(expected, "%s", d.silence())
		case m.PPID == sctp.PPIDSegment && skip:
			continue
		case m.PPID == sctp.PPIDSegment:
			d.failf(expected, "a DDP Segment")
		}
		c, err := sctp.ParseControl(m.Data)
		if err != nil {
			d.failf(expected, "%v", err)
		}
		return c
	}
}

// silence says what there is in place of a message.
func (d *ddpSession) silence() string {
	switch end, _ := d.assoc.End(); end {
	case script.FIN:
		return "SHUTDOWN"
	case script.RST:
		return "ABORT"
	}
	return fmt.Sprintf("nothing within %v", d.opts.Timeout)
}

// initiate asks for a session, and waits for the answer, which is the first message.
func (d *ddpSession) initiate(c sctp.Control, because string) sctp.Control {
	d.say(c.Function.String(), d.Control(c))
	answer := d.control("an answer: "+because, false)
	d.want(answer.SSN == 0, "DDP-SSN 0 in the first message", answer.SSN)
	return answer
}

// accepted asks for a session that must be accepted, in kind.
func (d *ddpSession) accepted(c sctp.Control, because string) sctp.Control {
	answer := d.initiate(c, because)
	want := sctp.FunctionAccept
	if c.Function.IsEnhanced() {
		want = sctp.FunctionEnhancedAccept
		if answer.Function == sctp.FunctionTerminate {
			d.notApplicable("the peer does not know RFC 6581: it terminates the session")
		}
	}
	d.want(answer.Function == want, fmt.Sprintf("an %v: %s", want, because), answer.Function)
	return answer
}

// plainInitiate is an Initiate that any peer takes, and enhancedInitiate one of RFC 6581
// without the peer-to-peer model.
func plainInitiate() sctp.Control { return sctp.Control{Function: sctp.FunctionInitiate} }

func enhancedInitiate() sctp.Control {
	return sctp.Control{Function: sctp.FunctionEnhancedInitiate, Enhanced: mpa.Enhanced{IRD: depth, ORD: depth}}
}

// openSession opens an ordinary session.
func (s *session) openSession(stream uint16) *ddpSession {
	d := s.stream(stream)
	d.accepted(plainInitiate(), "the Initiate is an ordinary one")
	return d
}

// answered waits for the Read Response.
func (d *ddpSession) answered(because string) {
	const expected = "an RDMA Read Response: "
	for until := d.deadline(); ; {
		m, ok := d.hear(time.Until(until))
		if !ok {
			d.failf(expected+because, "%s", d.silence())
		}
		if d.role() == mpa.RoleInitiator && isSend(&m) {
			continue // rping's client speaks first
		}
		d.want(isResponse(&m), expected+because, describeMessage(&m))
		return
	}
}

// works sees that the session works.
func (d *ddpSession) works(because string) {
	d.say("RDMA Read Request", d.EmptyRead())
	d.answered(because)
}

// unanswered sees for the quiet time that no Read Response comes. Anything else may.
func (d *ddpSession) unanswered(because string) {
	for until := time.Now().Add(d.quietTime()); ; {
		m, ok := d.hear(time.Until(until))
		if !ok {
			d.note(Checked, "no RDMA Read Response: "+because, nil)
			return
		}
		d.want(!isResponse(&m), "no RDMA Read Response: "+because, describeMessage(&m))
	}
}

func isResponse(m *script.Message) bool { return isOpcode(m, rdmap.OpReadResponse) }

func isSend(m *script.Message) bool { return isOpcode(m, rdmap.OpSend) }

func isOpcode(m *script.Message, op rdmap.Opcode) bool {
	seg, ok := m.Segment()
	_, got := rdmap.ParseControl(seg.RsvdULP)
	return ok && got == op
}

func describeMessage(m *script.Message) string {
	if m.PPID == sctp.PPIDControl {
		if c, err := sctp.ParseControl(m.Data); err == nil {
			return c.Function.String()
		}
		return "session control that cannot be read"
	}
	if seg, ok := m.Segment(); ok {
		_, op := rdmap.ParseControl(seg.RsvdULP)
		return op.String()
	}
	return "a DDP Segment that is too short"
}

// ends expects the end of the session: a Terminate, or the end of the association. RDMAP's
// Terminate may come before.
func (d *ddpSession) ends(because string) {
	expected := "the session terminated: " + because
	for until := d.deadline(); ; {
		m, ok := d.hear(time.Until(until))
		if end, _ := d.assoc.End(); !ok && end != script.Open {
			break
		}
		switch {
		case !ok:
			d.failf(expected, "%s", d.silence())
		case m.PPID == sctp.PPIDSegment:
			continue
		}
		c, err := sctp.ParseControl(m.Data)
		d.want(err == nil && c.Function == sctp.FunctionTerminate, expected, describeMessage(&m))
		break
	}
	d.note(Checked, expected, nil)
}

// close ends the session, and takes the peer's Terminate if it has one.
func (d *ddpSession) close() {
	d.say("Terminate", d.Function(sctp.FunctionTerminate))
	d.ends("the other end has terminated it")
}

// ddpSetupOf is a setup of DDP with so many streams.
func ddpSetupOf(streams uint16) chunk.Setup {
	ours := script.DDPSetup()
	ours.Out, ours.In = streams, streams
	return ours
}

// answersInitiate reports whether a message is an answer to an Initiate: one that accepts it, or rejects it, or a
// Terminate.
func answersInitiate(m *script.Message) bool {
	if m.PPID != sctp.PPIDControl {
		return false
	}
	c, err := sctp.ParseControl(m.Data)
	return err == nil && (c.Function == sctp.FunctionAccept || c.Function == sctp.FunctionReject ||
		c.Function == sctp.FunctionTerminate)
}

func isTerminate(m *script.Message) bool {
	c, err := sctp.ParseControl(m.Data)
	return m.PPID == sctp.PPIDControl && err == nil && c.Function == sctp.FunctionTerminate
}

// noData is a message without any bytes.
func noData(stream uint16) sctp.Message { return sctp.Message{Stream: stream, PPID: sctp.PPIDSegment} }

// aborted sees that the association is aborted, without which there is nothing to judge.
func (s *session) aborted() {
	if end, _ := s.assoc.End(); end != script.RST {
		s.notApplicable("the peer does not abort the association for that")
	}
}

// refusedOr sees that an Initiate that is not one opens no session: what the peer answers is
// a Terminate, if anything.
func (d *ddpSession) refusedOr(because string) {
	if m, ok := d.hear(d.quietTime()); ok {
		d.want(isTerminate(&m), "no session: "+because, describeMessage(&m))
	} else {
		d.silent = d
	}
	d.note(Checked, "no session: "+because, nil)
}
