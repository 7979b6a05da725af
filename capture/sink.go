package capture

import "github.com/goiwarp/iwarp/internal/wording"

// A Sink is told what a Tracker finds, in the order of the capture. Bytes are valid during the call only, and so is
// what a pointer points to, except a Connection. A Sink does not call the Tracker.
//
// For each packet, Segment is called first, with the packet as it is; then come the calls
// for what the packet changes in the order of bytes.
type Sink interface {
	// Opened is the first call for a connection.
	Opened(c *Connection)
	// Segment is called for every packet of a connection in the order of the capture,
	// whatever is in it. A sink that finds its way by itself needs no more.
	Segment(c *Connection, s *Segment)
	// Data and Gap give the bytes of a direction without overlap: each call's offset
	// is where the one before it has ended.
	Data(c *Connection, d Data)
	Gap(c *Connection, g Gap)
	// Ended is called once for each direction, and then no Data or Gap for it.
	// Segments may still come.
	Ended(c *Connection, e End)
	// Forgotten is the last call for a connection.
	Forgotten(c *Connection)
	// Skipped is called for a packet that is not of a TCP connection, or of one that was forgotten.
	Skipped(p *Packet, why Skip)
}

// A Segment is a TCP segment as it was captured.
type Segment struct {
	Packet *Packet
	Dir    Dir
	Flags  Flags
	Seq    uint32
	Ack    uint32 // if Flags has ACK
	Window uint16 // not scaled
	// Offset is the stream offset of its first byte; of the next one to be sent if it
	// has none.
	Offset uint64
	// Length is the bytes that were sent, Data the captured ones at their front. With
	// RST there are none that count, whatever was sent.
	Length int
	Data   []byte
	// Early is how many bytes at its front lie before stream offset 0; they are
	// neither in Length nor in Data.
	Early int
	// Order is its place among those before it.
	Order Order
	// Repeated is how many of its bytes were not new: captured before, or given up in
	// a Gap.
	Repeated int
	// Match compares those with what was captured first.
	Match Match
	// First is the number of the packet that Repeated bytes were in before: the first
	// byte's, or one whose bytes differ. It is 0 if that was too long ago.
	First uint64
	// KeepAlive marks a probe: a segment of at most one byte that was sent before. The byte
	// may differ.
	KeepAlive bool
}

// Order is the place of a segment among those captured before it.
type Order uint8

// The orders of a segment.
const (
	OrderEmpty  Order = iota // no bytes
	OrderNext                // it goes on where the bytes seen so far end, maybe after some of them again
	OrderAhead               // bytes are missing in front of it, and none after it was seen
	OrderFills               // new bytes, and some after them were seen: reordered, or lost on the way and sent again
	OrderRepeat              // all bytes were seen before: sent again
)

var orderNames = [...]string{"empty", "next", "ahead", "fills", "repeat"}

func (o Order) String() string { return wording.Name(o, "order", orderNames[:]) }

// Match is how bytes that were captured twice compare.
type Match uint8

// The outcomes of a comparison.
const (
	MatchUnknown Match = iota // nothing to compare, or cut otherwise than the first time
	MatchSame                 // all that were captured twice are the same
	MatchDiffers              // some are not
)

var matchNames = [...]string{"unknown", "same", "differs"}

func (m Match) String() string { return wording.Name(m, "match", matchNames[:]) }

// Data is bytes of a direction in order. All of them were in one packet.
type Data struct {
	Dir    Dir
	Offset uint64 // stream offset of the first one
	Bytes  []byte
	Packet Stamp // that brought them, maybe some time ago
	// Segment is where the packet's TCP segment lies: Bytes is a part of it, and
	// mostly all.
	Segment Span
}

// A Span is a run of bytes in a stream.
type Span struct {
	Offset uint64
	Length int
}

// endOffset returns the offset after the last byte.
func (s Span) endOffset() uint64 { return s.Offset + uint64(s.Length) }

// A Gap is bytes of a direction that the capture does not have.
type Gap struct {
	Dir    Dir
	Offset uint64 // stream offset of the first one
	Length uint64 // in bytes
	Cause  Cause
	// Packet is the one that is cut for CauseSnap, and otherwise the one at which
	// waiting has ended.
	Packet Stamp
}

// Cause is why bytes are missing.
type Cause uint8

// The causes of a Gap.
const (
	// CauseSnap is the snap length: the packet is there, its end is not.
	CauseSnap Cause = iota
	// CauseLost is bytes that the receiver has acknowledged: they were sent, and the
	// capture lacks the packet. At the end of a direction whose FIN was not captured,
	// the last byte may be that FIN.
	CauseLost
	// CauseLimit is bytes that had to be given up because too much was waiting for
	// them; they were not acknowledged.
	CauseLimit
	// CauseEnd is bytes that had not come, and were not acknowledged, when the
	// direction ended.
	CauseEnd
)

var causeNames = [...]string{"cut off by the snap length", "lost by the capture", "given up", "never came"}

func (c Cause) String() string { return wording.Name(c, "cause", causeNames[:]) }

// An End is the end of a direction.
type End struct {
	Dir    Dir
	Offset uint64 // after the last byte
	Reason EndReason
	Packet Stamp // that has ended it
	// Peer tells that the Packet is the other direction's, as for one that is ended by an
	// RST of its receiver.
	Peer bool
}

// EndReason is why a direction has ended.
type EndReason uint8

// The reasons for an End.
const (
	EndFIN      EndReason = iota // its sender closed it
	EndRST                       // one of the ends has reset the connection
	EndReplaced                  // a SYN began another connection between the same ends
	EndEvicted                   // there were too many connections
	EndCapture                   // the capture is over
	EndShutdown                  // SCTP: one of the ends has shut the association down
	EndAbort                     // SCTP: one of the ends has aborted the association
	EndSession                   // SCTP: what was on the stream is over, and the association may go on
)

var endNames = [...]string{"FIN", "RST", "replaced by a new connection", "evicted", "end of capture", "SHUTDOWN",
	"ABORT", "end of session"}

func (e EndReason) String() string { return wording.Name(e, "reason", endNames[:]) }
