// Package engine composes MPA, DDP and RDMAP into one endpoint of one
// connection: a Queue Pair from the moment the startup frames are exchanged.
//
// It does no I/O, starts no goroutine and reads no clock. It is given bytes
// (Input), posted work (PostSend, PostReceive) and the time (HandleTimeout);
// it gives back bytes to send (Output), completions and notices, the
// time at which it wants to be called next (Deadline) and what is to become of
// the TCP connection (LLP). Everything an RFC asks of a stream in Full
// Operation is decided here or in the layers below, so that it can be tested as
// a dialogue and used without a socket.
//
// A QP is not safe for concurrent use: its driver holds one lock around it.
//
// # The ways of a segment
//
// What carries a connection does so in one of three ways, and the engine is the same above
// all of them:
//
//	              MPA, in order       MPA, ahead of order            whole segments
//	below         any TCP             a TCP that is aware of MPA     SCTP, or any SegmentStream
//	gives         Input: bytes of    the same, and before that      Segment: a segment, with
//	              the stream          InputAhead: bytes at an       its number
//	                                  offset, in which internal/recovery
//	                                  finds FPDUs
//	errors, end   found by Input;     the same                       Broken, Ended: at a number
//	              PeerClosed
//	takes         Output: FPDUs       Output: a slice for each       Output: a slice for each
//	                                  segment of TCP                 segment
//
// A segment that has its turn when it comes is taken through the layers at once, whatever
// it came by (onULPDU). One that is ahead of others (segment.go, which has the rules, and
// ahead.go) is split in two: its payload goes where it belongs, and its header waits for
// its turn.
//
//	          its turn? ─ yes ─> onULPDU: checks, placement, delivery ─> completions, answers, Terminate
//	Segment ──┤                     ^ in its turn
//	          no ─> placeAhead ─────┤ header only: checked again, the payload is in place
//	                 │ Write: memory.Domain.Place
//	                 │ Read Response: rdmap.ORQ.TakeAhead finds the Read, into its sink
//	                 │ Send: ddp.UntaggedQueue.TakeAhead, into the receive that its MSN will get
//	                 └─ neither, or a check fails: held as a whole, within bounds (Ahead)
//
// Placing ahead changes memory and notes which bytes are placed. Every completion, invalidation, answer and error
// happens in the turn of its segment, so that it is the same as in order (TestAnyOrder); a check that fails ahead of
// its turn is no error yet. Of two segments ahead that claim the same bytes the second to come is held, and one that
// has its turn leaves what was sent after it; but Writes that overlap have no order (RFC 5040, section 5.5, rule 3).
// A Shared Receive Queue gives a receive to the first segment of a message that has its turn. What came before is
// dropped by its number: the consumer may have its memory back.
//
// Over TCP everything comes once more in order, and Input judges it as always; it takes an
// FPDU for placed if place, header and CRC are those of one that was (shown.go, which has the one
// exception to what follows). So what is shown changes when payload is placed, and nothing else; it
// can be left out, cut short or wrong.
//
// What is held has a bound that ends the connection, for peers that leave something out. So
// that a peer that does its part never comes to it, HeldAhead says how much it is: the
// driver tells the lower layer, which may take nothing new while that is too much and
// something is missing.
//
// # Header Alignment
//
// Each TCP segment begins with an FPDU and holds whole ones, so that an RNIC can place it by
// itself. The engine counts what it builds in segments of the EMSS (align.go; RFC 5044,
// section 4.5), and Output gives a slice for each record of TCP, which package internal/tcp
// sends with MSG_EOR, after which Linux begins a new segment.
//
// # Errors and the end
//
// An error becomes a [Failure] with the RFC's code, the offset of the FPDU and the reason.
// The Terminate goes at the next segment boundary; then the engine flushes, and closes by
// FIN. A close of ours is a drain (close.go, drain.go): posted work and Reads asked for go
// out, then, when nothing has come from the peer during one round trip (quiet.go), a FIN;
// until the peer's FIN the QP stays in RTS and receives, places and delivers. A FIN of the
// peer ends the receives, and our half stays open for a while. Only a QP that is put into
// Closing, the verbs' close, takes what still comes for an error.
package engine
