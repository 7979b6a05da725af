package sctp

import (
	"fmt"
	"time"
)

// Receive takes a message that has arrived. Its Data may be used again when the events of the call have been taken.
func (a *Association) Receive(now time.Time, m Message) {
	if a.end.How != NotYet {
		return
	}
	if m.Ordered {
		a.stats.Ordered++
	}
	switch s, state := a.receiver(m.Stream); {
	case int(m.Stream) >= a.cfg.Streams:
		a.stray()
	case state == Dead:
		a.stats.Dropped++
	case state == Idle:
		a.idle(now, m)
	case state == Draining:
		a.drained(now, s, m)
	default:
		a.take(now, s, m)
	}
}

func (a *Association) receiver(id uint16) (*session, State) {
	state := a.State(id)
	if state == Idle || state == Dead {
		return nil, state
	}
	return a.streams[id].session, state
}

// drained acts on a message after the end of a session. A new Initiate shows that the peer has our last message,
// without which it must not use the stream again: RFC 5043, Section 6.6.
func (a *Association) drained(now time.Time, s *session, m Message) {
	c, err := ParseControl(m.Data)
	possible := !s.owed && s.on.given == s.on.sent
	if m.PPID != PPIDControl || err != nil || c.SSN != 0 || c.Function.Plain() != FunctionInitiate || !possible {
		a.stats.Dropped++
		return
	}
	s.on.acked = s.on.sent
	a.over(now, s, nil)
	a.initiated(now, m.Stream, c)
}

// take judges a message of a session.
func (a *Association) take(now time.Time, s *session, m Message) {
	s.right = min(s.next, s.endsAt)
	if v := a.form(m); v != nil {
		a.violate(now, s, v)
		return
	}
	ssn, _ := SSN(m.Data) // which form has seen
	number, ok := s.account.enter(ssn)
	switch {
	case !ok:
		// RFC 5043, Section 10: "An invalid DDP-SSN MAY result in termination of the DDP stream."
		a.violate(now, s, violation(RuleSSN, "%d, where %d is the next", ssn, uint16(s.next)))
	case number > s.endsAt:
		// Section 6.2: "The final User Data Chunk for each side MAY be a DDP Stream Terminate." [C04]
		a.violate(now, s, violation(RuleSequence, "message %d, after the Terminate", number))
	case m.PPID == PPIDSegment:
		a.segment(now, s, number, m.Data[SSNLen:])
	default:
		a.controlled(now, s, number, m.Data)
	}
	if s.next > s.endsAt {
		a.terminated(now, s)
	}
}

// form judges what does not depend on the session.
//
// RFC 5043, Section 5.1: "An SCTP Association that has had the DDP Adaptation Indication negotiated will carry only
// SCTP Data Chunks as defined in this document." Section 10: "The adaptation layer MUST use the Unordered option on
// all Data Chunks (U Flag set to one)."
func (a *Association) form(m Message) *Violation {
	switch {
	case m.PPID != PPIDSegment && m.PPID != PPIDControl:
		return violation(RulePPID, "PPID %d", m.PPID)
	case m.Ordered && a.cfg.Strict:
		return violation(RuleUnordered, "")
	case len(m.Data) < SSNLen:
		return violation(RuleShort, "%d octets", len(m.Data))
	}
	return nil
}

// segment acts on a DDP Segment.
func (a *Association) segment(now time.Time, s *session, number uint64, segment []byte) {
	switch {
	case s.state == InitiateReceived || number == 0:
		// RFC 5043, Section 6.3: "DDP Stream Sessions allow each party to send a single non-payload message before the
		// other end commits specific resources to the session." [C04]
		a.violate(now, s, violation(RuleSequence, "a DDP Segment before the session is open"))
	case s.discards:
	case s.state == InitiateSent:
		a.hold(now, s, number, segment)
	default:
		s.opened() // the active side has waited for our Accept
		a.tell(Event{Kind: EventSegment, Stream: s.on.id, Number: number, Segment: segment})
		a.evidence(now, s)
		if s.state == TerminateSent {
			s.deadline = now.Add(a.cfg.CloseTimeout) // the peer still has something to say
		}
	}
}

// EarlyCost is what one segment that has overtaken an Accept counts, besides its octets.
const EarlyCost = 128

// hold keeps a segment that has overtaken the Accept. RFC 5043, Section 6.2, lets the peer send any number of them: the
// carrier is to hold it back in time.
func (a *Association) hold(now time.Time, s *session, number uint64, segment []byte) {
	cost := EarlyCost + len(segment)
	if a.early+cost > a.cfg.MaxEarly {
		a.tell(Event{Kind: EventRefused, Stream: s.on.id, Err: fmt.Errorf("%w: %d octets in all sessions", ErrEarly, a.early+cost)})
		a.cancel(now, s)
		return
	}
	a.early += cost
	s.held += cost
	s.early = append(s.early, Event{Kind: EventSegment, Stream: s.on.id, Number: number, Segment: clone(segment)})
}

// controlled acts on a session control message. After the first of each side none but a Terminate is legal.
func (a *Association) controlled(now time.Time, s *session, number uint64, b []byte) {
	c, err := ParseControl(b)
	switch v, bad := err.(*Violation); { //nolint:errorlint // ParseControl says so
	case bad:
		a.violate(now, s, v)
	case number == 0 && s.state == InitiateSent:
		a.answered(now, s, c)
	case number == 0 && s.cancelled:
		a.answeredLate(now, s, c)
	case c.Function == FunctionTerminate:
		a.ends(now, s, number)
	default:
		a.violate(now, s, violation(RuleSequence, "an %v in state %v", c.Function, s.state))
	}
}

// answeredLate acts on the answer to an Initiate that we have given up.
func (a *Association) answeredLate(now time.Time, s *session, c Control) {
	s.opened()
	switch c.Function.Plain() {
	case FunctionAccept:
		a.evidence(now, s) // our Terminate follows
	case FunctionReject, FunctionTerminate:
		s.owed = false // it is over without ours
		a.drain(now, s)
	default:
		a.violate(now, s, violation(RuleSequence, "an %v in answer to ours", c.Function))
	}
}

// ends takes note of the peer's Terminate.
func (a *Association) ends(now time.Time, s *session, number uint64) {
	again := s.endsAt != noEnd
	s.endsAt = min(s.endsAt, number)
	switch {
	case again:
		a.violate(now, s, violation(RuleSequence, "a second Terminate"))
		return
	case s.highest > number, s.state == InitiateReceived && number > 1:
		a.violate(now, s, violation(RuleSequence, "a Terminate that is not the last message"))
		return
	}
	if s.state == Open || s.state == TerminateSent && !s.cancelled {
		a.tell(Event{Kind: EventTerminate, Stream: s.on.id, Number: number})
	}
}

// terminated acts on the peer's Terminate when all before it is here. [C03]
func (a *Association) terminated(now time.Time, s *session) {
	switch s.state {
	case InitiateReceived:
		a.withdraw(now, s, ErrCancelled)
	case Open:
		if !a.cfg.HalfClose && !s.discards {
			a.terminate(now, s, Draining)
		}
	case TerminateSent:
		a.drain(now, s)
	}
}
