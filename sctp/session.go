package sctp

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// State is that of the session on a stream.
type State uint8

// The states.
const (
	Idle             State = iota // no session
	InitiateSent                  // ours; the answer is awaited
	InitiateReceived              // the peer's; our consumer's answer is awaited
	Open
	TerminateSent // our Terminate is sent, or owed; the peer's is awaited
	Draining      // all is said; the peer may not have our last message yet
	Dead          // unusable until the association ends
)

var stateNames = [...]string{"Idle", "InitiateSent", "InitiateReceived", "Open", "TerminateSent", "Draining", "Dead"}

// String names the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// noEnd is above all numbers of messages.
const noEnd = 1 << 63

// A session is a DDP Stream Session.
type session struct {
	on       *stream
	state    State
	enhanced bool         // its kind
	offer    mpa.Offer    // ours, if we are active
	request  *mpa.Request // the peer's, if we are passive

	// Receiving.
	account
	early    []Event // segments that have overtaken the Accept
	held     int     // bytes of them
	endsAt   uint64  // the number of the peer's Terminate
	ended    bool    // the consumer knows of it
	wrongAt  uint64  // the number of the first message that breaks a rule
	wrong    *Violation
	discards bool // segments are not wanted any more
	unheard  bool // and the peer does not know that, as it was told of an end in order alone

	// Sending.
	first   uint64 // what stream.sent was before the session
	control uint64 // and after its last control message
	owed    bool   // a Terminate, which waits for that

	canceled bool // it was never opened on our side
	known    bool // to the consumer
	deadline time.Time
	moved    uint64 // what SCTP had taken and the peer acknowledged when that was set
	renewed  int    // how often it was put off because of that
}

// startSession puts a session on an idle stream.
//
// RFC 5043, section 6.1: "The DDP-SSN is reset to zero at the beginning of each DDP Stream Session."
func (a *Association) startSession(id uint16, state State, s session) *session {
	st := a.streams[id]
	if st == nil {
		st = &stream{id: id}
		a.streams[id] = st
	}
	s.on, s.first, s.control, s.endsAt, s.wrongAt = st, st.sent, st.sent, noEnd, noEnd
	st.session, st.late = &s, false
	a.live++
	a.unused = time.Time{}
	a.enter(&s, state)
	return &s
}

// counts reports whether a session in the state counts as one of those that are bounded.
func (s State) counts() bool { return s != Idle && s != Draining }

// enter changes the state.
func (a *Association) enter(s *session, to State) {
	a.busy += one(to.counts()) - one(s.state.counts())
	a.pending += one(to == InitiateReceived) - one(s.state == InitiateReceived)
	s.state = to
	if to == Open {
		a.strays = 0
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endSession ends a session: the stream is idle again, unless it is dead.
func (a *Association) endSession(now time.Time, s *session, err error) {
	a.enter(s, Idle)
	a.forget(s)
	s.on.session = nil
	if a.live--; a.live == 0 {
		a.unused = now
	}
	if s.known {
		a.emit(Event{Kind: EventEnded, Stream: s.on.id, Err: err})
	}
}

// forget drops what has come early.
func (a *Association) forget(s *session) {
	a.early -= s.held
	s.early, s.held = nil, 0
}

// killStream makes the stream unusable. With its only session, the association is of no use either.
func (a *Association) killStream(now time.Time, s *session, err error) {
	s.on.dead = true
	a.endSession(now, s, err)
	if a.live == 0 {
		a.abort(err)
	}
}

// State returns that of a stream.
func (a *Association) State(id uint16) State {
	switch st := a.streams[id]; {
	case st == nil:
		return Idle
	case st.dead:
		return Dead
	case st.session == nil:
		return Idle
	default:
		return st.session.state
	}
}

// sessionAt returns the session on a stream if it is in a state.
func (a *Association) sessionAt(id uint16, state State) *session {
	if st := a.streams[id]; st != nil && st.session != nil && st.session.state == state {
		return st.session
	}
	return nil
}

// number queues a message of the session, whose Data begins with room for the DDP-SSN.
//
// RFC 5043, section 6: "The DDP-SSNs assigned to the Data Chunks for a session MUST NOT have any gaps." [C06]
func (a *Association) number(s *session, ppid uint32, data []byte) {
	ssn := uint16(s.on.sent - s.first)
	data[0], data[1] = byte(ssn>>8), byte(ssn)
	s.on.sent++
	if ppid == PPIDSegment {
		s.on.unsent++
	}
	if len(s.on.out) == 0 {
		a.turns = append(a.turns, s.on)
	}
	s.on.out = append(s.on.out, Message{Stream: s.on.id, PPID: ppid, Data: data})
}

// sendControl sends a session control message.
func (a *Association) sendControl(s *session, c Control) {
	a.number(s, PPIDControl, AppendControl(nil, &c))
	s.control = s.on.sent
}

// heard reports whether the peer has our last control message.
//
// RFC 5043, section 6.6: "A DDP Stream Session Control message MUST NOT be sent if it may be received before a prior
// DDP Stream Session Control message within the same DDP Stream Session." "This MAY be determined by SCTP acking of
// the Data Chunk used to carry the DDP Stream Session Initiate message, or by receipt of a responsive DDP Stream
// Session Control message." [C08]
func (s *session) heard() bool { return s.on.acked >= s.control }

// opened takes note that the peer has shown that it has our Initiate or Accept, the first message of ours.
func (s *session) opened() { s.on.acked = max(s.on.acked, s.first+1) }

// terminate goes to a state in which our Terminate is sent, as soon as it may be.
func (a *Association) terminate(now time.Time, s *session, to State) {
	a.enter(s, to)
	s.owed = true
	a.setDeadline(now, s)
	a.handleAcked(now, s)
}

// setDeadline gives the peer time for what it has to do next. What is left of a connection whose half a consumer has
// closed may take as long as the consumer wants.
func (a *Association) setDeadline(now time.Time, s *session) {
	s.deadline, s.moved = now.Add(a.cfg.CloseTimeout), s.progress()
	if s.state == TerminateSent && !s.owed && !s.discards {
		s.deadline = time.Time{}
	}
}

// progress changes when SCTP takes one of our messages, or the peer has acknowledged some.
func (s *session) progress() uint64 { return s.on.given + s.on.acked }

// handleAcked goes on with what has waited for the peer to have our messages.
func (a *Association) handleAcked(now time.Time, s *session) {
	if s.owed && s.heard() {
		s.owed = false
		a.sendControl(s, Control{Function: FunctionTerminate})
		a.setDeadline(now, s)
	}
	// RFC 5043, section 6.6: "A DDP Stream Identifier MUST NOT be reused for another DDP Stream Session while any Data
	// Chunk from a prior session might be outstanding." [C08]
	if s.state == Draining && !s.owed && s.on.acked == s.on.sent {
		a.endSession(now, s, nil)
	}
}

// drain goes to the state in which only the peer's having our last message is awaited.
func (a *Association) drain(now time.Time, s *session) {
	a.enter(s, Draining)
	a.forget(s)
	a.setDeadline(now, s)
	a.handleAcked(now, s)
}
