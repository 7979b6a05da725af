package conform

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// ofActive returns a case for the active end of DDP over SCTP.
func ofActive(id, requirements, section, text string, run func(*session)) Case {
	c := toInitiator("sctp/active-"+id, requirements, section, text, run)
	c.sctp = true
	return c
}

// asked waits for the session that the peer asks for, in the association there is or in a new one.
func (s *session) asked() (d *ddpSession, q sctp.Control) {
	if s.assoc == nil && !s.associate(script.DDPSetup()) {
		s.failf("an association: our INIT ACK has the indication of DDP", "ABORT")
	}
	const expected = "an Initiate: it is the peer that asks for sessions"
	stream, ok := s.assoc.Asked(s.deadline())
	d = &ddpSession{s, s.assoc.Session(stream), stream}
	if !ok {
		s.failf(expected, "%s", d.silence())
	}
	q = d.control(expected, false)
	s.want(q.Function == sctp.FunctionInitiate || q.Function == sctp.FunctionEnhancedInitiate, expected, q.Function)
	s.want(q.SSN == 0, "DDP-SSN 0 in the first message", q.SSN)
	return d, q
}

// acceptOf is what accepts an Initiate, in kind.
func acceptOf(q *sctp.Control) sctp.Control {
	if !q.Function.IsEnhanced() {
		return sctp.Control{Function: sctp.FunctionAccept}
	}
	return sctp.Control{Function: sctp.FunctionEnhancedAccept, Enhanced: *script.AnswerEnhanced(q.Enhanced, depth)}
}

// accept accepts the peer's session, with private data, and takes its RTR indication where one is agreed on.
func (d *ddpSession) accept(q *sctp.Control, private int) {
	a := acceptOf(q)
	a.PrivateData = text(private)
	d.say(a.Function.String(), d.Control(a))
	if a.Enhanced.A {
		d.ready(a.Enhanced.RTR())
	}
}

// ready takes the RTR indication, and answers one that is a Read.
func (d *ddpSession) ready(kind mpa.RTR) {
	expected := fmt.Sprintf("an RTR indication by %v first: that was agreed on", kind)
	m, ok := d.hear(d.opts.Timeout)
	if !ok {
		d.failf(expected, "%s", d.silence())
	}
	seg, ok := m.Segment()
	d.want(ok, expected, describeMessage(&m))
	got, read := indication(&seg)
	d.want(got == kind, expected, describeMessage(&m))
	if kind == mpa.RTRRead {
		h := rdmap.OpReadResponse.Header(1)
		h.Last, h.STag, h.TO = true, read.SinkSTag, read.SinkTO
		d.say("RDMA Read Response", d.Segment(h, nil))
	}
}

// indication says what RTR indication a segment is; 0 is none.
func indication(seg *ddp.Segment) (mpa.RTR, rdmap.ReadRequest) {
	read, _ := rdmap.ParseReadRequest(seg.Payload)
	return mpa.RTROf(rdmap.ZeroLength(seg)), read
}

// openedByPeer is a session that the peer has asked for, and that works.
func (s *session) openedByPeer() *ddpSession {
	d, q := s.asked()
	d.accept(&q, 0)
	d.works("the session is open")
	return d
}

// asksAgain sees that the peer still asks for sessions.
func (s *session) asksAgain() {
	s.dissociate()
	s.openedByPeer().close()
}

// sctpActive are the cases of DDP over SCTP for peers that ask for sessions.
func sctpActive() []Case {
	cases := setupCases(ofActive, "INIT", func(s *session) { s.asked() })
	cases = append(cases, sctpAnswers()...)
	cases = append(cases, ssnCases(ofActive, (*session).openedByPeer, (*session).asksAgain)...)
	return append(cases, activeViolations()...)
}

// sctpAnswers are the cases of how sessions are answered.
func sctpAnswers() []Case {
	return []Case{
		unindicatedAnswer("indication-none", "without Adaptation Layer Indication",
			func(ours *chunk.Setup) { ours.HasAdaptation = false }),
		unindicatedAnswer("indication-other", "with another Adaptation Layer Indication",
			func(ours *chunk.Setup) { ours.Adaptation = 7 }),
		ofActive("waits", "C04", "RFC 5043 6.2", "No DDP Segment comes before the Accept.", func(s *session) {
			d, _ := s.asked()
			if m, ok := d.hear(s.quietTime()); ok {
				d.want(m.PPID == sctp.PPIDControl, "no DDP Segment: the session is not accepted", describeMessage(&m))
			}
			s.note(Checked, "no DDP Segment: the session is not accepted", nil)
		}),
		ofActive("accept", "C01 C03 C04", "RFC 5043 6.2",
			"After an Accept the session works, and our Terminate ends it.",
			func(s *session) { s.openedByPeer().close() }),
		ofActive("ready", "C01", "RFC 6581 7, 9.2",
			"After an Enhanced Accept with A=1 the RTR indication comes first, of the kind that was answered.",
			func(s *session) {
				d, q := s.asked()
				if !q.Enhanced.A {
					s.notApplicable("the peer does not ask for the peer-to-peer model")
				}
				d.accept(&q, 0)
				d.close()
			}),
		ofActive("private-data", "C02", "RFC 5043 5.2.3; RFC 6581 7",
			"An Accept with 512 bytes of private data, of which an enhanced one has 508, is taken like any other.",
			func(s *session) {
				d, q := s.asked()
				most := mpa.MaxPrivateData
				if q.Function.IsEnhanced() {
					most = mpa.MaxEnhancedPrivateData
				}
				d.accept(&q, most)
				d.works("512 bytes are allowed")
				d.close()
			}),
		ofActive("reject", "C01 C03", "RFC 5043 6.3; RFC 6581 7", "No DDP Segment follows a Reject.", func(s *session) {
			d, q := s.asked()
			f := sctp.FunctionReject
			if q.Function.IsEnhanced() {
				f = sctp.FunctionEnhancedReject
			}
			d.say(f.String(), d.Control(sctp.Control{Function: f,
				Enhanced: mpa.Enhanced{IRD: q.Enhanced.ORD, ORD: q.Enhanced.IRD}}))
			if m, ok := d.hear(s.quietTime()); ok {
				d.want(m.PPID == sctp.PPIDControl, "no DDP Segment: the session is rejected", describeMessage(&m))
			}
			s.note(Checked, "no DDP Segment: the session is rejected", nil)
		}),
	}
}

// unindicatedAnswer is a case of an INIT ACK that is not one of DDP.
func unindicatedAnswer(id, text string, change func(*chunk.Setup)) Case {
	return ofActive(id, "C05", "RFC 5043 11.1", "An INIT ACK "+text+" is followed by no session.", func(s *session) {
		ours := script.DDPSetup()
		change(&ours)
		if s.associate(ours) {
			_, ok := s.assoc.Asked(time.Now().Add(s.quietTime()))
			s.want(!ok, "no session: DDP procedures MUST NOT be performed upon this association", "a message")
			s.dissociate()
		}
		s.openedByPeer().close()
	})
}

// activeViolations are the cases of messages that break a rule, in place of an answer and after it.
func activeViolations() []Case {
	cases := []Case{
		unanswerable("accept-513", "C02", "RFC 5043 5.2.3", "513 bytes of private data in the Accept",
			func(d *ddpSession, q *sctp.Control) sctp.Message {
				a := acceptOf(q)
				a.PrivateData = text(mpa.MaxPrivateData + 1)
				return d.Control(a)
			}),
		unanswerable("accept-kind", "C01", "RFC 6581 7", "an Accept of the other kind than the Initiate",
			func(d *ddpSession, q *sctp.Control) sctp.Message {
				if q.Function.IsEnhanced() {
					return d.Function(sctp.FunctionAccept)
				}
				return d.Control(sctp.Control{Function: sctp.FunctionEnhancedAccept,
					Enhanced: mpa.Enhanced{IRD: depth, ORD: depth}})
			}),
		unanswerable("function-unknown", "C01", "RFC 5043 5.2.3", "a message of Function Code 8",
			func(d *ddpSession, _ *sctp.Control) sctp.Message { return d.Function(8) }),
		unanswerable("initiate", "C04", sctpPatterns, "an Initiate",
			func(d *ddpSession, _ *sctp.Control) sctp.Message { return d.Function(sctp.FunctionInitiate) }),
		unanswerable("segment", "C04", sctpPatterns, "a DDP Segment",
			func(d *ddpSession, _ *sctp.Control) sctp.Message { return d.EmptyRead() }),
	}
	for _, v := range sctpOpenViolations() {
		cases = append(cases, ofActive(v.id, v.requirement, v.section,
			"In an open session "+v.text+" ends it.", func(s *session) {
				d := s.openedByPeer()
				d.say(v.text, v.message(d))
				d.ends("such a message is in none of the legal patterns")
			}))
	}
	return cases
}

// unanswerable is a case of a message that is no answer to an Initiate.
func unanswerable(id, requirement, section, what string, message func(*ddpSession, *sctp.Control) sctp.Message) Case {
	return ofActive("answer-"+id, requirement, section,
		"In place of an answer "+what+" ends the session.", func(s *session) {
			d, q := s.asked()
			d.say(what, message(d, &q))
			d.ends("such an answer is in none of the legal patterns")
		})
}
