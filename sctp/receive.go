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
	case int(m.Stream) >= a.cfg.Streams: // which is SCTP's to answer: RFC 9260, section 6.5
		a.stats.Dropped++
	case state == Dead:
		a.stats.Dropped++
	case state == Idle:
		a.idle(now, m)
	case state == Draining:
		a.drained(now, s, m)
	default:
		a.process(now, s, m)
	}
}

func (a *Association) receiver(id uint16) (*session, State) {
	state := a.State(id)
	if state == Idle || state == Dead {
		return nil, state
	}
	return a.streams[id].session, state
}

// drained acts on a message after the end of a session. A new Initiate, well formed or not, shows that the peer has
// our last message, without which it must not use the stream again: RFC 5043, section 6.6.
func (a *Association) drained(now time.Time, s *session, m Message) {
	possible := !s.owed && s.on.given == s.on.sent
	if ssn, _ := SSN(m.Data); !m.startsSession() || ssn != 0 || !possible {
		a.stats.Dropped++
		return
	}
	s.on.acked = s.on.sent
	a.endSession(now, s, nil)
	a.idle(now, m)
}

// process judges a message of a session. One that has no place in the order of DDP-SSNs is wrong where it comes.
func (a *Association) process(now time.Time, s *session, m Message) {
	if v := a.checkSSN(m); v != nil {
		a.violate(now, s, min(s.next, s.endsAt), v)
		return
	}
	ssn, _ := SSN(m.Data) // which form has seen
	number, ok := s.account.enter(ssn)
	switch {
	case !ok:
		// RFC 5043, section 10: "An invalid DDP-SSN MAY result in termination of the DDP stream." [C12]
		a.violate(now, s, min(s.next, s.endsAt), violation(RuleSSN, "%d, where %d is the next", ssn, uint16(s.next)))
	case number > s.endsAt: // breaks says so
	case m.PPID == PPIDSegment:
		a.segment(now, s, number, m.Data[SSNLen:])
	default:
		a.controlled(now, s, number, m.Data)
	}
	if s.highest > s.endsAt {
		// Section 6.2: "The final User Data Chunk for each side MAY be a DDP Stream Terminate." [C04]
		a.noteViolation(now, s, s.endsAt, violation(RuleSequence, "message %d, after the Terminate", s.highest))
	}
	a.actInOrder(now, s)
}

// noteViolation takes note of a message that breaks a rule, until it has its turn. While our answer to an Initiate is
// awaited, nothing that has come before it can make it legal.
//
// RFC 5043, section 6.1: "The normative sequence for considering Payload Data Chunks within a given session is based
// upon each Data Chunk's DDP-SSN. When considered in this normative sequence, all sessions MUST conform to one of the
// patterns". [C04] [C06]
func (a *Association) noteViolation(now time.Time, s *session, number uint64, v *Violation) {
	switch {
	case s.state == InitiateReceived:
		a.violate(now, s, number, v)
	case number < s.wrongAt:
		s.wrong, s.wrongAt = v, number
	}
}

// actInOrder acts on what has its turn, as all before it is here: the first message that breaks a rule, and the peer's
// Terminate.
func (a *Association) actInOrder(now time.Time, s *session) {
	if v := s.wrong; v != nil && s.next > s.wrongAt {
		s.wrong = nil
		a.violate(now, s, s.wrongAt, v)
	}
	if s.next > s.endsAt {
		a.terminated(now, s)
	}
}

// checkSSN judges whether a message has a DDP-SSN.
//
// RFC 5043, section 5.1: "An SCTP Association that has had the DDP Adaptation Indication negotiated will carry only
// SCTP Data Chunks as defined in this document." [C09]
func (a *Association) checkSSN(m Message) *Violation {
	switch {
	case m.PPID != PPIDSegment && m.PPID != PPIDControl:
		return violation(RulePPID, "PPID %d", m.PPID)
	case len(m.Data) < SSNLen:
		return violation(RuleShort, "length %d", len(m.Data))
	}
	return nil
}

// segment acts on a DDP Segment.
func (a *Association) segment(now time.Time, s *session, number uint64, segment []byte) {
	switch {
	case s.state == InitiateReceived || number == 0:
		// RFC 5043, section 6.3: "DDP Stream Sessions allow each party to send a single non-payload message before the
		// other end commits specific resources to the session." [C04]
		a.noteViolation(now, s, number, violation(RuleSequence, "a DDP Segment before the session is open"))
	case s.discards:
		a.dropped(s)
	case number > s.wrongAt:
	case s.state == InitiateSent:
		a.holdEarly(now, s, number, segment)
	default:
		s.opened() // the active side has waited for our Accept
		a.emit(Event{Kind: EventSegment, Stream: s.on.id, Number: number, Segment: segment})
		a.handleAcked(now, s)
	}
}

// EarlyCost is what one segment that has overtaken an Accept counts, besides its bytes.
const EarlyCost = 128

// holdEarly keeps a segment that has overtaken the Accept. RFC 5043, section 6.2, lets the peer send any number of
// them: the carrier is to hold it back in time.
func (a *Association) holdEarly(now time.Time, s *session, number uint64, segment []byte) {
	cost := EarlyCost + len(segment)
	if a.early+cost > a.cfg.MaxEarly {
		a.emit(Event{Kind: EventRefused, Stream: s.on.id,
			Err: fmt.Errorf("%w: %d bytes in all sessions", ErrEarly, a.early+cost)})
		a.giveUp(now, s, true)
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
		a.noteViolation(now, s, number, v)
	case number == 0 && s.state == InitiateSent:
		a.answered(now, s, c)
	case number == 0 && s.canceled:
		a.answeredLate(now, s, c)
	case c.Function == FunctionTerminate:
		a.ends(now, s, number)
	default:
		a.noteViolation(now, s, number, violation(RuleSequence, "%v as message %d", c.Function, number))
	}
}

// answeredLate acts on the answer to an Initiate that we have given up.
func (a *Association) answeredLate(now time.Time, s *session, c Control) {
	s.opened()
	switch c.Function.Plain() {
	case FunctionAccept:
		a.handleAcked(now, s) // our Terminate follows
	case FunctionReject, FunctionTerminate:
		s.owed = false // it is over without ours
		a.drain(now, s)
	default:
		a.violate(now, s, 0, violation(RuleSequence, "an %v in answer to ours", c.Function))
	}
}

// ends takes note of the peer's Terminate, until it has its turn.
func (a *Association) ends(now time.Time, s *session, number uint64) {
	if s.state == InitiateReceived && number > 1 {
		a.noteViolation(now, s, number, violation(RuleSequence, "a Terminate that does not follow the Initiate"))
		return
	}
	s.endsAt = min(s.endsAt, number)
}

// terminated acts on the peer's Terminate, which has its turn. [C03]
func (a *Association) terminated(now time.Time, s *session) {
	if !s.ended && !s.discards && (s.state == Open || s.state == TerminateSent) {
		s.ended = true
		a.emit(Event{Kind: EventTerminate, Stream: s.on.id, Number: s.endsAt})
	}
	switch s.state {
	case InitiateReceived:
		a.withdraw(now, s, ErrCanceled)
	case TerminateSent:
		a.drain(now, s)
	}
}
