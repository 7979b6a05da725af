package sctp

import (
	"fmt"
	"time"
)

// maxUnacked is how many messages of a stream may be under way: more could not be told apart.
//
// RFC 5043, section 10: "the sending DDP must simply refrain from sending more than 32767 Data Chunks for a single
// stream without acknowledgment. Note that it MUST NOT rely upon ULP flow control for this purpose." [C12] The last two
// are left to the Terminates of RDMAP and of the session.
const maxUnacked = window - 1

// Room returns how many segments Send takes now, on a stream whose session is open.
func (a *Association) Room(id uint16) int {
	s := a.sessionAt(id, Open)
	if s == nil {
		return 0
	}
	queued, unacked := int(s.on.sent-s.on.given), int(s.on.sent-s.on.acked)
	return max(min(a.cfg.MaxQueued-queued, maxUnacked-2-unacked), 0)
}

// Owes reports whether the peer may lack something of the session on a stream: what we have sent, or what we have yet
// to send, which waits for the former.
func (a *Association) Owes(id uint16) bool {
	st := a.streams[id]
	return st != nil && st.session != nil && st.acked < st.sent
}

// Unsent returns how many DDP Segments of a stream Output has not returned, also of a session that has ended.
func (a *Association) Unsent(id uint16) int {
	st := a.streams[id]
	if st == nil {
		return 0
	}
	return st.unsent
}

// TerminateLen is how many bytes the message takes that ends a session. Any DDP Segment takes more.
const TerminateLen = controlLen

// Send sends a DDP Segment, which may come in parts, and copies it. The error is ErrState, ErrFull or ErrSize.
//
// RFC 5043, section 9: "The SCTP adaptation layer MUST reject DDP Segments that are larger than the maximum size
// specified."
func (a *Association) Send(id uint16, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	s := a.sessionAt(id, Open)
	switch {
	case s == nil:
		return ErrState
	case n > a.MULPDU():
		return fmt.Errorf("%w: length %d, %d at most", ErrSize, n, a.MULPDU())
	case a.Room(id) == 0:
		return ErrFull
	}
	a.number(s, PPIDSegment, AppendSegment(make([]byte, 0, SSNLen+n), 0, parts...))
	return nil
}

// Close ends our half of a session, after all that was sent. What the peer still sends is handed out until its own
// Terminate. An Initiate of ours is taken back, and the peer's is answered with a Terminate.
//
// RFC 5043, section 6.2: "The final User Data Chunk for each side MAY be a DDP Stream Terminate. At least one side
// MUST send a DDP Stream Terminate." RFC 6581, section 7: it "MUST use the DDP stream session termination function
// code" for enhanced sessions too.
func (a *Association) Close(now time.Time, id uint16) {
	st := a.streams[id]
	if st == nil || st.session == nil {
		return
	}
	switch s := st.session; s.state {
	case InitiateSent:
		a.giveUp(now, s, false)
	case InitiateReceived:
		s.known = false
		a.terminate(now, s, Draining)
	case Open:
		a.terminate(now, s, TerminateSent)
		if s.next > s.endsAt {
			a.drain(now, s)
		}
	}
}

// Abort is Close, and what the peer still sends is dropped. If the peer does send something, and the association has
// no other session, the association is aborted, by which the peer learns that something was lost, although SCTP has
// acknowledged it. If the association has other sessions, the peer, which has our Terminate, cannot be told.
func (a *Association) Abort(now time.Time, id uint16) {
	if st := a.streams[id]; st != nil && st.session != nil {
		s := st.session
		s.unheard = s.unheard || !s.discards
		s.discards = true
		if a.Close(now, id); s.state == TerminateSent {
			a.setDeadline(now, s)
		}
	}
}

// Reset ends an open session at once, and not in order: what the peer still sends is dropped, and it is told that this
// is so. If there is no other session, the association is aborted. If there are others, last is sent as a DDP Segment
// in front of our Terminate: an RDMAP Terminate. A peer that has our Terminate already, and has others, cannot be told
// anything more. A session that is not open yet ends as by Abort.
//
// RFC 5043, section 11.3: "Termination of an SCTP Association due to errors should be handled at the SCTP layer. The
// RDMAP-defined RDMAP Terminate Message SHOULD NOT be sent on each DDP stream when a determination has been made to
// terminate an SCTP association." "Other RDMAP-defined Terminate Messages MUST be generated as specified when a DDP
// stream is terminated."
func (a *Association) Reset(now time.Time, id uint16, last []byte) {
	state := a.State(id)
	switch open := a.sessionAt(id, Open); {
	case a.live == 1 && (state == Open || state == TerminateSent && !a.streams[id].session.canceled):
		a.abort(ErrReset)
		return
	case open != nil && len(last) > 0 && len(last) <= a.MULPDU():
		a.number(open, PPIDSegment, AppendSegment(nil, 0, last))
		open.discards = true // of which it learns by that
	}
	a.Abort(now, id)
}

// cancel gives up an Initiate of ours. Our Terminate must not overtake it, and the answer may be under way.
func (a *Association) cancel(now time.Time, s *session) {
	s.known, s.canceled, s.discards = false, true, true
	a.forget(s)
	a.terminate(now, s, TerminateSent)
}

// giveUp is cancel where the peer may have done nothing wrong: it learns of segments that are dropped, be it now or
// later.
func (a *Association) giveUp(now time.Time, s *session, drops bool) {
	drops = drops || s.held > 0
	a.cancel(now, s)
	s.unheard = true
	if drops {
		a.dropped(s)
	}
}

// dropped tells the peer, if it may take us for one that has it, of a segment that nobody takes: the association is
// aborted, unless it has other sessions.
func (a *Association) dropped(s *session) {
	if s.unheard && a.live == 1 {
		a.abort(ErrReset)
	}
}

// withdraw ends a session that the consumer has not answered.
func (a *Association) withdraw(now time.Time, s *session, err error) {
	a.emit(Event{Kind: EventWithdrawn, Stream: s.on.id, Err: err})
	s.known = false
	a.terminate(now, s, Draining)
}

// violate ends a session over what the peer has done; below number, all that was to be handed out was.
//
// RFC 5043, section 6.1: "If the adaptation layer receives a Payload Data Chunk that conforms to none of the
// enumerated legal patterns, the DDP Stream Session MUST be terminated." [C04]
func (a *Association) violate(now time.Time, s *session, number uint64, v *Violation) {
	v.Stream = s.on.id
	switch s.state {
	case InitiateSent:
		a.emit(Event{Kind: EventRefused, Stream: v.Stream, Err: v})
		a.cancel(now, s)
	case InitiateReceived:
		a.withdraw(now, s, v)
	case Open:
		a.fail(now, s, number, v)
	case TerminateSent:
		a.killStream(now, s, v)
	}
}

// fail ends an open session: the consumer has its last words, and calls Close, or the time is up.
func (a *Association) fail(now time.Time, s *session, number uint64, v *Violation) {
	if s.discards {
		return
	}
	s.discards, s.deadline = true, now.Add(a.cfg.CloseTimeout)
	a.emit(Event{Kind: EventFailed, Stream: s.on.id, Number: number, Err: v})
}
