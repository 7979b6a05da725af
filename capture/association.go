package capture

import (
	"fmt"
	"net/netip"
	"time"
)

// An Association is one SCTP association of a capture, over IP or in UDP (RFC 6951). It belongs
// to an [Associations]; an [AssociationSink] may keep it, and read it during calls. One with
// several addresses at an end counts as one for each pair of addresses.
type Association struct {
	// Number counts from 0 in the order of first packets.
	Number int
	// Ends are those of the two directions, by the [Dir] of what they send.
	Ends [2]AssociationEnd
	// InUDP tells that it is encapsulated.
	InUDP bool
	// First and Last are the packets that it was seen in.
	First, Last Stamp
	// State is the sink's.
	State any

	key     associationKey
	swapped bool // Forward is from b to a of the tuple
	up      bool // the handshake is over, or was not captured
	over    bool
	packets uint64
	pending [2]Setup // of a restart

	agedAt   uint64 // packets, when acknowledgments last became old
	agedTime time.Time
}

// String is the two ends, as in "10.0.0.1:40000 -> 10.0.0.2:9899".
func (a *Association) String() string {
	return fmt.Sprintf("%v -> %v", a.Ends[Forward].Addr, a.Ends[Backward].Addr)
}

// An AssociationEnd is one end of an Association, and what it has sent.
type AssociationEnd struct {
	// Addr is the address, with the port of SCTP.
	Addr netip.AddrPort
	// UDPPort is that of its packets, 0 without UDP.
	UDPPort uint16
	// Setup is its INIT or INIT ACK.
	Setup Setup
	// Count is what has been seen so far.
	Count AssociationCount

	tag     uint32 // that packets to it have
	tagged  bool   // tag is known
	tsns    tsns
	pieces  pieces
	acked   uint32 // of the other end's TSNs
	hasAck  bool
	acks    uint64
	marked  uint32 // acked, when acknowledgments last became old
	hasMark bool
	settled uint32 // acked, one such time before
	hasOld  bool
}

// A Setup is what an INIT or INIT ACK says. Without one in the
// capture, its Packet has the number 0.
type Setup struct {
	Tag     uint32 // the Initiate Tag
	Window  uint32 // the receiver's, in bytes
	Out, In uint16 // streams
	TSN     uint32 // of the first DATA chunk
	// Adaptation is the Adaptation Layer Indication (RFC 5061), if there is one.
	Adaptation    uint32
	HasAdaptation bool
	Packet        Stamp
	// Whole tells that all of it was captured. If not, an indication may be missing.
	Whole bool
}

// Seen reports whether it was captured.
func (s *Setup) Seen() bool { return s.Packet.Number != 0 }

// AssociationCount is what was captured of a direction of an association.
type AssociationCount struct {
	Packets  uint64 // of any kind
	Messages uint64 // user messages that are whole
	Bytes    uint64 // of them
	Repeated uint64 // DATA chunks that had been there before
	Missing  uint64 // DATA chunks that the capture lacks
	Foreign  uint64 // packets with another tag than the receiver's, which drops them
}

// Settled returns the highest TSN of the end up to which the other end has received everything,
// so long ago that none of it will turn up in the capture any more.
func (e *AssociationEnd) Settled() (tsn uint32, ok bool) { return e.settled, e.hasOld }

// Acknowledged reports whether the other end has received everything up to a TSN of this end.
func (e *AssociationEnd) Acknowledged(tsn uint32) bool { return e.hasAck && !Before(e.acked, tsn) }

// Complete reports whether all DATA chunks from one TSN to another were captured.
func (e *AssociationEnd) Complete(from, to uint32) bool { return e.tsns.complete(from, to) }

// Whole reports whether nothing of what the end has sent up to now is missing, from its INIT
// or INIT ACK on.
func (e *AssociationEnd) Whole() bool {
	return e.Setup.Seen() && e.Count.Missing == 0 && !e.Lags()
}

// Lags reports whether DATA chunks of the end were sent, or even received, that were not
// captured yet.
func (e *AssociationEnd) Lags() bool {
	return e.tsns.ahead > 0 || e.hasAck && e.tsns.started && !Before(e.acked, e.tsns.next)
}

// Known is how much is known of what the end has sent: when that has changed, Lags may have a
// new answer.
func (e *AssociationEnd) Known() (chunks uint32, acks uint64) { return e.tsns.next, e.acks }

// A Message is a user message of SCTP, as it was captured first.
type Message struct {
	Dir       Dir
	Stream    uint16
	PPID      uint32
	Unordered bool
	TSN       uint32 // of its last chunk
	Chunks    int    // more than one if it was fragmented
	// First and Last are the packets with its first chunk, and that completed it.
	First, Last Stamp
	// Data is what was captured of it, Length its bytes as sent.
	Data   []byte
	Length int
}

// A Finish is the end of an association.
type Finish struct {
	Dir    Dir // of what has ended it
	Reason EndReason
	Packet Stamp
	Text   string // of an ABORT, as the sender's consumer has given it
}

// An AssociationSink is told what an [Associations] finds, in the order of the capture. What a pointer points to,
// except an Association, is valid during the call only.
type AssociationSink interface {
	// AssociationOpened is the first call for an association.
	AssociationOpened(a *Association)
	// SetUp is called for each INIT and INIT ACK that an end's Setup comes from.
	SetUp(a *Association, d Dir)
	// Message is called once for each user message, as soon as it is there.
	Message(a *Association, m *Message)
	// Passed is called at the end of each packet.
	Passed(a *Association)
	// Finished is called when an association has ended, or is forgotten, once.
	Finished(a *Association, f Finish)
}
