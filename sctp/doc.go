// Package sctp is the adaptation of DDP to SCTP: RFC 5043, with the enhanced connection establishment of
// RFC 6581, section 7.
//
// It is pure protocol. Nothing in it touches a socket, a goroutine, a lock or a clock, and it is not SCTP
// itself: a carrier, which is, gives it user messages and the time, and takes user messages.
//
//	a := sctp.New(now, sctp.Config{Streams: 64, MaxMessage: 1444})
//	a.Receive(now, m)           // a user message has arrived
//	a.Acked(now, stream, n)     // the first n messages that went out on a stream have arrived
//	m, ok := a.Output()         // a user message to be sent, unordered
//	e, ok := a.Event()          // what happened, in order
//	a.HandleTimeout(now)        // at a.Deadline()
//	end := a.End()              // whether the association is to be ended, and how
//
// The carrier has to see to the Adaptation Layer Indication ([AdaptationDDP], in INIT and INIT ACK) before there
// is an [Association] at all.
//
// # Sessions
//
// A DDP stream is a pair of SCTP streams with the same identifier. [Association.Connect] asks for a session on one,
// [Association.Accept] and [Association.Reject] answer the peer's request for one, [Association.Send] sends a DDP
// Segment in it, [Association.Close] and [Association.Abort] end it. An association has several at a time, which have
// nothing to do with each other.
//
//	Idle ── Connect ─> InitiateSent ── Accept ─> Open ── Close ─> TerminateSent ── Terminate ─> Draining ─> Idle
//	  └── Initiate ──> InitiateReceived ─ Accept ─┘└──── Terminate ──────────────────────────────┘
//
// # Order
//
// All messages travel unordered. The DDP-SSN is the only order there is: session control is judged in that order,
// whatever order it arrives in, and so is what breaks a rule: all before it is handed out first. A segment is handed
// out the moment it arrives ([EventSegment]), with its number in that order, so that its payload can be placed ahead of
// others; the consumer puts segments in order, and holds what must wait. Only segments that overtake the Accept are
// held here.
//
// # Errors
//
// A peer that breaks a rule of the documents loses its session: the error is a [*Violation], which names the rule
// and its section. In the code, [C03] and the like name requirements that docs/requirements.md lists.
package sctp
