package decode

import (
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Connection is an iWARP connection, and what is known about it so far.
type Connection struct {
	// TCP is the connection below: its number, its ends, its counts. Over SCTP it stands for
	// the session, with the number of that, and counts messages in place of segments.
	TCP *capture.Connection
	// Session is what there is over SCTP, nil over TCP.
	Session *Session
	// Midstream tells that the startup was not captured, or not all of it, or that it
	// failed: what follows was found out from the FPDUs, as sure as Confidence says.
	Midstream  bool
	Confidence Confidence
	// Unseen tells that the startup may be in what the capture lacks of the connection, so that it
	// is not known whether it was completed. It is set before Ended.
	Unseen bool

	// Initiator is the direction of the one that sends the first frame. With Midstream
	// it is not known, and Forward.
	Initiator capture.Dir
	// Dialect is that of the first frame, and from the answer on the one that was agreed
	// on; 0 if not known.
	Dialect mpa.Dialect
	// Revisions are the Rev of each end's frame, by direction; -1 if there was none.
	Revisions [2]int
	// Agreed tells that the startup is complete, and FPDUs follow.
	Agreed bool
	// Rejected tells that the last startup ended in a Reply with R=1.
	Rejected bool
	// Startups is how many startups began on the connection.
	Startups int
	// Version is DDP's and RDMAP's.
	Version uint8
	CRC     bool
	// Markers tells for each direction whether there are markers in it.
	Markers [2]bool
	// Enhanced is what each end's frame says of IRD, ORD and RTR, nil if it has no
	// enhanced data.
	Enhanced [2]*mpa.Enhanced
	// PrivateData is what each end's ULP has sent at startup, nil if nothing.
	PrivateData [2][]byte
	// RTR is what opened the connection.
	RTR RTR

	// ULP counts what the upper layer protocol has said.
	ULP ULPCount

	// Halves are the two directions, by capture.Dir.
	Halves [2]Half
	// Findings counts the findings by severity, suppressed ones among them.
	Findings [3]uint64
	// Suppressed counts by name the findings that were not reported, as there were too many of
	// that name on the connection, or an equal note. It is nil if there were none.
	Suppressed map[string]uint64

	// State is the consumer's.
	State any
}

// A ULPCount counts the [ULP] events of a connection.
type ULPCount struct {
	Protocol string // empty if it is not known
	Messages uint64
	Failures uint64 // that statuses tell of
	// Latency is that of answers, in nanoseconds.
	Latency Distribution
	// Forgotten: what came later is not explained. The connection was quiet while others said more than can be kept in
	// mind.
	Forgotten bool
}

// Responder is the direction of the one that answers.
func (c *Connection) Responder() capture.Dir { return c.Initiator.Peer() }

// A seen is how much of a startup there is in a capture.
type seen int

// startupSeen tells how many ends have sent a startup frame.
func (c *Connection) startupSeen() (n seen) {
	for _, rev := range c.Revisions {
		if rev >= 0 {
			n++
		}
	}
	return n
}

func (n seen) String() string {
	switch n {
	case 0:
		return "the startup is not in the capture"
	case 1:
		return "only one end's startup frame is in the capture"
	}
	return "the startup is not one that leads to Full Operation"
}

// advice says what to do about it.
func (n seen) advice() string {
	if n > 1 {
		return "the two ends go on all the same: each may have its own view of CRCs and markers"
	}
	return startupAdvice
}

const startupAdvice = "begin the capture before the connection is opened, to see what was agreed on"

// An RTR says which indications were asked for, and which was sent.
type RTR struct {
	PeerToPeer        bool    // one was agreed on
	Offered, Answered mpa.RTR // by the Request and the Reply
	Sent              mpa.RTR // 0 if none was seen
}

// A Half is one direction of a connection in Full Operation.
type Half struct {
	Start uint64 // stream offset at which Full Operation begins
	FPDUs uint64 // whole and right: nothing is wrong with their CRCs, pads and markers
	// Bytes is what these take on the stream, and Content the bytes of their ULPDUs.
	Bytes, Content uint64
	// Malformed is how many of them hold no well-formed DDP segment, or none of a well-formed RDMAP message.
	Malformed uint64
	Bad       uint64 // FPDUs in error
	Cut       uint64 // FPDUs of which bytes are missing
	Lost      uint64 // bytes that are missing, or in which no FPDU was found
	// Undecoded is bytes that are in the capture, and in no startup frame, no FPDU and
	// not in streaming data in front of a startup.
	Undecoded   uint64
	MarkerCount uint64

	// Segments is the TCP segments with bytes of Full Operation, as captured, and
	// Aligned those of them that begin with an FPDU and hold whole ones.
	Segments, Aligned uint64
	LargestSegment    int
	// Wire counts them as they are on the wire.
	Wire Alignment
	// Sizes are those of FPDUs in bytes, and Reads the latencies of the Reads that
	// this end has asked for, in nanoseconds.
	Sizes, Reads Distribution

	// Ops counts by opcode the messages in FPDUs, and their payload: its segments and Malformed are all FPDUs.
	Ops [16]OpCount
	// STags is how many different STags Writes name, up to MaxSTags.
	STags int

	// OutstandingReads is the most Read Requests of this end that were unanswered at
	// one time. It is set before Ended.
	OutstandingReads int

	// Memory is what a receiver of this direction needs. It is zero if an FPDU was in error, or bytes are missing: a
	// receiver ends the connection there, or has what the capture lacks.
	Memory Memory

	// End is how the direction ended; Ended tells that it did.
	Ended bool
	End   capture.End
}

// An OpCount counts the messages of an opcode.
type OpCount struct {
	Messages uint64 `json:"messages"` // complete ones
	Segments uint64 `json:"segments"`
	Bytes    uint64 `json:"bytes"` // of payload
	Empty    uint64 `json:"empty"` // messages without payload
}

// Memory is the reassembly memory in bytes that the receiver of this direction would have
// needed, depending on how it works, for what came in the order in which it came: the figures
// of draft-culley-iwarp-mpa-03, section 13.1.2.
type Memory struct {
	// TCP is what a receiver holds if it hands bytes on only in order: all bytes after a
	// hole, and the FPDU that is not whole yet.
	TCP int `json:"in_order_only"`
	// MPA is what it holds if it places each FPDU as soon as it can locate it on this stream:
	// by the order, by lengths, and by the markers that there are.
	MPA int `json:"by_mpa"`
	// Located is what it holds if it can locate every FPDU as soon as that is whole, as it
	// could with markers.
	Located int `json:"located"`
	// Aligned is the size of the largest segment, which is all that it holds if each segment
	// has whole FPDUs: BufferSizeAF for an EMSS of that size.
	Aligned int `json:"aligned"`
}

// Failed says how a connection has failed, though nobody may have broken a rule: "rejected",
// "refused", "reset", "startup not completed" or "terminated"; over SCTP "aborted" too.
// It is empty if the connection has not failed, and before Ended. Totals count a rejected one apart.
func (c *Connection) Failed() string {
	switch {
	case c.Rejected:
		return "rejected"
	case c.Session != nil && c.Session.Refused:
		return "refused"
	case c.Halves[0].End.Reason == capture.EndAbort || c.Halves[1].End.Reason == capture.EndAbort:
		return "aborted"
	case c.refused():
		return "refused"
	case c.Halves[0].End.Reason == capture.EndRST || c.Halves[1].End.Reason == capture.EndRST:
		return "reset"
	case !c.Agreed && !c.Midstream && !c.Unseen:
		return "startup not completed"
	case c.Halves[0].Ops[rdmap.OpTerminate].Messages+c.Halves[1].Ops[rdmap.OpTerminate].Messages > 0:
		return "terminated"
	}
	return ""
}

// illegible reports whether nothing could be read of what is in the capture only in part.
func (c *Connection) illegible() bool {
	read := uint64(c.startupSeen())
	for d := range c.Halves {
		read += c.Halves[d].FPDUs + c.Halves[d].Bad + c.Halves[d].Cut
	}
	return c.Unseen && read == 0
}

// refused reports whether a RST is all that has answered a SYN.
func (c *Connection) refused() bool {
	opener, other := &c.TCP.Halves[capture.Forward], &c.TCP.Halves[capture.Backward]
	return c.Session == nil && opener.SYN != 0 && other.SYN == 0 && opener.Count.Segments+other.Count.Segments == 0 &&
		c.Halves[capture.Backward].End.Reason == capture.EndRST && !c.Halves[capture.Backward].End.Peer
}

// count counts how a connection has come out.
func (n *Totals) count(c *Connection) {
	if c.illegible() {
		n.Illegible++
	}
	switch {
	case c.Rejected:
		n.Rejected++
	case c.Failed() != "":
		n.Failed++
	}
}

// Totals is what was in a capture.
type Totals struct {
	Packets     uint64
	Bytes       uint64 // captured, of all packets
	Connections uint64 // of TCP
	IWARP       uint64 // of them
	// Associations is those of SCTP, and Sessions the DDP sessions in them.
	Associations, Sessions uint64
	Failed                 uint64 // of IWARP and Sessions, except for those that were rejected: see [Connection.Failed]
	Rejected               uint64 // of them: nothing has gone wrong where an end says no
	Skipped                uint64 // packets that are neither of TCP nor of SCTP, or of a connection that was forgotten
	// Unread counts those of Skipped in which iWARP may be, by why they could not be read. It is nil if there are none.
	Unread map[Unread]uint64
	// Illegible counts those of IWARP of which neither a startup frame nor an FPDU could be read, as the capture lacks
	// parts of them.
	Illegible uint64
	// Evicted counts the TCP connections that were forgotten before their ends, as there were too many at once
	// ([capture.Config.MaxConnections]). What came of them later is in Unread.
	Evicted uint64
	// Cut is packets that the snap length has cut, in the connections that were looked at or not.
	Cut uint64
	// Dropped is packets that the capture lacks, as far as it says so ([capture.Packet.Dropped]).
	Dropped  uint64
	Findings [3]uint64

	// Backwards counts packets that are earlier than one in front of them in the capture, and
	// BackwardsBy is by how much, at most.
	Backwards   uint64
	BackwardsBy time.Duration
}

// An Unread is why packets could not be read.
type Unread struct {
	Why  capture.Skip
	Link capture.LinkType // for SkipLink
}

func (u Unread) String() string {
	if u.Why == capture.SkipLink {
		return u.Link.String()
	}
	return u.Why.String()
}
