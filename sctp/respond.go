package sctp

import (
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// maxStrays bounds what a peer may send where there is no session. Only what asks for one is answered, by a
// Terminate, and that never is: two idle ends would go on for ever.
const maxStrays = 16

// idle acts on a message where there is no session: an Initiate begins one, and nothing else means anything.
func (a *Association) idle(now time.Time, m Message) {
	c, err := ParseControl(m.Data)
	switch {
	case m.startsSession() && (err != nil || c.SSN != 0):
		a.malformed(now, m.Stream)
	case m.PPID != PPIDControl || err != nil:
		a.countStray()
	case c.SSN == 0 && c.Function.Plain() == FunctionInitiate:
		a.initiated(now, m.Stream, c)
	case c.SSN == 1 && c.Function == FunctionTerminate && a.streams[m.Stream] != nil && a.streams[m.Stream].late:
		// The peer has taken back a request before it had our answer: RFC 5043, section 6.6, has it wait only until we
		// have the Initiate.
		a.streams[m.Stream].late = false
		a.stats.Dropped++
	default:
		a.countStray()
	}
}

// startsSession reports whether a message begins a session, in whatever form: it is no segment, and neither answers nor
// ends one.
func (m *Message) startsSession() bool {
	if m.PPID != PPIDControl || len(m.Data) < SSNLen {
		return false
	}
	switch m.Function().Plain() {
	case FunctionInitiate:
		return true
	case FunctionAccept, FunctionReject, FunctionTerminate:
		return false
	}
	ssn, _ := SSN(m.Data)
	return ssn == 0
}

// malformed answers a request for a session that is none, as its sender awaits an answer. A Reject would be the
// consumer's: RFC 5043, section 6.3.
//
// RFC 5043, section 6.1: "If the adaptation layer receives a Payload Data Chunk that conforms to none of the
// enumerated legal patterns, the DDP Stream Session MUST be terminated." [C04]
func (a *Association) malformed(now time.Time, id uint16) {
	if a.countStray(); a.end.How == NotYet {
		a.terminate(now, a.passive(id, Draining, &mpa.Request{}), Draining)
	}
}

// countStray counts a message that belongs to no session.
func (a *Association) countStray() {
	a.stats.Dropped++
	if a.strays++; a.strays >= maxStrays {
		a.abort(violation(RuleStray, "%d messages", a.strays))
	}
}

// initiated acts on the peer's request for a session.
//
// RFC 5043, section 6.4: "There MUST be a finite limit on the number of such requests that are pending a ULP
// decision. When more session requests are received, the passive side MUST respond to the Initiate message with a DDP
// Stream Terminate Message." [C07]
func (a *Association) initiated(now time.Time, id uint16, c Control) {
	q := request(c)
	if !a.cfg.Listening || a.pending >= a.cfg.MaxPending || a.busy >= a.cfg.MaxSessions {
		a.terminate(now, a.passive(id, Draining, q), Draining)
		return
	}
	if q.PeerToPeer && q.RTR&a.cfg.RTR == 0 {
		// RFC 6581, section 7: the message "is not reported to ULP if none of the requested RTR indication types are
		// supported by the receiver. In this case, the Provider MAY generate a reject reply message indicating which
		// RTR indication types it supports." [C01]
		a.reject(now, a.passive(id, InitiateReceived, q), nil, 0, 0)
		return
	}
	s := a.passive(id, InitiateReceived, q)
	s.known = true
	// "Received DDP Stream Session Control messages SHOULD be reported to the ULP. If reported, any supplied Private
	// Data MUST be available for the ULP to examine." [C03]
	a.emit(Event{Kind: EventRequest, Stream: id, Request: q})
}

func (a *Association) passive(id uint16, state State, q *mpa.Request) *session {
	s := a.startSession(id, state, session{enhanced: q.Enhanced, request: q})
	s.next = 1 // the Initiate
	s.on.late = true
	return s
}

// request returns an Initiate as mpa has it.
func request(c Control) *mpa.Request {
	q := &mpa.Request{Dialect: mpa.DialectRFC5044, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation,
		PrivateData: clone(c.PrivateData)}
	if c.Function.IsEnhanced() {
		q.Dialect = mpa.DialectRFC6581
		q.Ask(c.Enhanced)
	}
	return q
}

// Accept opens the session that the peer has asked for, and returns what was agreed on. The error is ErrState, or
// wraps mpa.ErrOffer: then the request can still be answered.
func (a *Association) Accept(now time.Time, id uint16, answer mpa.Answer) (n mpa.Negotiated, err error) {
	s := a.sessionAt(id, InitiateReceived)
	if s == nil {
		return n, ErrState
	}
	if err := answer.Check(s.request.Dialect); err != nil {
		return n, err
	}
	n = agreed(mpa.RoleResponder, s.request.Dialect)
	n.IRD, n.ORD, n.PrivateData = answer.IRD, answer.ORD, s.request.PrivateData
	c := Control{Function: FunctionAccept.as(s.enhanced), PrivateData: answer.PrivateData}
	if s.enhanced {
		c.Enhanced = answer.Conclude(&n, s.request)
	}
	s.on.late = false
	a.enter(s, Open)
	a.sendControl(s, c)
	return n, nil
}

// Reject refuses the session that the peer has asked for, with private data for its consumer. ird and ord go to an
// enhanced peer only; ord may be the depth that its IRD should have had. The error is as with Accept.
//
// RFC 5043, section 6.3: "A DDP Stream Session Reject message MUST NOT be sent unless the rejection is at the
// direction of the ULP."
func (a *Association) Reject(now time.Time, id uint16, privateData []byte, ird, ord mpa.Depth) error {
	s := a.sessionAt(id, InitiateReceived)
	if s == nil {
		return ErrState
	}
	if err := (mpa.Answer{PrivateData: privateData, IRD: ird, ORD: ord}).Check(s.request.Dialect); err != nil {
		return err
	}
	s.known = false // all is said
	a.reject(now, s, privateData, ird, ord)
	return nil
}

// reject answers an enhanced Initiate with an Enhanced Reject, and a plain one with a plain one. [C01]
func (a *Association) reject(now time.Time, s *session, privateData []byte, ird, ord mpa.Depth) {
	c := Control{Function: FunctionReject.as(s.enhanced), PrivateData: privateData}
	if s.enhanced {
		c.Enhanced = s.request.Rejection(ird, ord, a.cfg.RTR)
	}
	a.sendControl(s, c)
	a.drain(now, s)
}
