package sctp

import "github.com/goiwarp/iwarp/mpa"

// EventKind is what an Event tells.
type EventKind uint8

// The kinds of events, each about one session.
const (
	// EventRequest: the peer asks for a session. Answer with Accept or Reject.
	EventRequest EventKind = iota + 1
	// EventWithdrawn: that request cannot be answered any more. Err says why.
	EventWithdrawn
	// EventEstablished: the peer has accepted the session that we asked for.
	EventEstablished
	// EventRefused: there will be no session: Err is a *Refusal, a *Violation, or wraps ErrTimeout or ErrEarly.
	EventRefused
	// EventSegment: a DDP Segment has arrived.
	EventSegment
	// EventTerminate: the peer's last message, which has Number, has its turn: all segments below were handed out.
	EventTerminate
	// EventFailed: the peer has broken a rule, a *Violation, in an open session. Nothing it sends is taken any more;
	// all segments below Number were handed out. The consumer may send an RDMAP Terminate, and then calls Close.
	EventFailed
	// EventEnded: nothing is left of the session. Err is nil if it ended as it should.
	EventEnded
)

// An Event is something that happened to a session.
type Event struct {
	Kind   EventKind
	Stream uint16
	// Number of the message in the peer's order, that of a session's first segment being 1. Its low 16 bits are the
	// DDP-SSN.
	Number uint64
	// Segment is valid until the next call of Receive.
	Segment    []byte
	Request    *mpa.Request
	Negotiated mpa.Negotiated
	Err        error
}

func (a *Association) emit(e Event) { a.events = append(a.events, e) }

// Event returns what has happened, once and in order. All events of one call must be fetched before the next.
func (a *Association) Event() (e Event, ok bool) {
	if len(a.events) == 0 {
		return Event{}, false
	}
	e = a.events[0]
	a.events[0] = Event{}
	if a.events = a.events[1:]; len(a.events) == 0 {
		a.events = a.room[:0]
	}
	return e, true
}
