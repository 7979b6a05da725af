package decode

import (
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// A Consumer is told about iWARP connections. Events are valid during the call only; a
// Connection may be kept.
type Consumer interface {
	// Found is the first call for a connection, as soon as it is known to be iWARP.
	Found(c *Connection)
	Segment(c *Connection, s *Segment)
	Startup(c *Connection, s *Startup)
	FPDU(c *Connection, f *FPDU)
	Missing(c *Connection, m *Missing)
	Read(c *Connection, r *Read)
	Finding(c *Connection, f *Finding)
	ULP(c *Connection, u *ULP)
	// Ended is the last call for a connection. What is known of it is complete.
	Ended(c *Connection)
}

// Ignore is a Consumer that does nothing, for others to embed.
type Ignore struct{}

// Found does nothing.
func (Ignore) Found(*Connection) {}

// Segment does nothing.
func (Ignore) Segment(*Connection, *Segment) {}

// Startup does nothing.
func (Ignore) Startup(*Connection, *Startup) {}

// FPDU does nothing.
func (Ignore) FPDU(*Connection, *FPDU) {}

// Missing does nothing.
func (Ignore) Missing(*Connection, *Missing) {}

// Read does nothing.
func (Ignore) Read(*Connection, *Read) {}

// Finding does nothing.
func (Ignore) Finding(*Connection, *Finding) {}

// ULP does nothing.
func (Ignore) ULP(*Connection, *ULP) {}

// Ended does nothing.
func (Ignore) Ended(*Connection) {}

// A Segment is a TCP segment as it was captured, or a packet without bytes: see
// [capture.Segment] for the fields.
type Segment struct {
	Packet    capture.Stamp
	Dir       capture.Dir
	Flags     capture.Flags
	Seq, Ack  uint32
	Window    uint16
	Offset    uint64 // stream offset of the first byte
	Length    int    // bytes
	Captured  int    // of them, at the front
	Order     capture.Order
	Repeated  int // bytes that were captured before
	Match     capture.Match
	First     uint64 // number of the packet that had the Repeated bytes first; 0 if not known
	KeepAlive bool
}

// End returns the stream offset after the last byte.
func (s *Segment) End() uint64 { return s.Offset + uint64(s.Length) }

// Frame is a kind of [Startup].
type Frame uint8

// The frames of a startup, and what may come before them.
const (
	FrameRequest   Frame = iota + 1 // MPA Request Frame
	FrameReply                      // MPA Reply Frame
	FrameRtr                        // the Rtr frame of the 2007 proposal
	FrameStartKey                   // Start Key
	FrameMessage                    // private data message before a Start Key
	FrameStreaming                  // streaming data before a delayed startup: Offset and Size only
	FrameSession                    // SCTP: a session control message
)

var frameNames = [...]string{"", "start-req", "start-rep", "start-rtr", "start-key", "private-data",
	"streaming", "session-control"}

func (f Frame) String() string { return wording.Name(f, "frame", frameNames[:]) }

// A Startup is one frame of MPA's startup, or over SCTP one session control message.
type Startup struct {
	Frame  Frame
	Dir    capture.Dir
	Offset uint64 // stream offset of its first byte
	Size   int    // bytes
	// First and Last are the packets with its first byte, and the one that
	// completed it.
	First, Last capture.Stamp
	Bytes       []byte // as sent, as far as they were captured; nil for FrameStreaming
	// Cut is how many bytes of its private data the snap length has cut off: 0 if it is whole.
	Cut int
	// Fields is the frame by the RFC's fields, of a Request, a Reply or an Rtr frame.
	Fields mpa.StartupFrame
	// Control is the session control message, of a FrameSession that can be read.
	Control *sctp.Control
	// PrivateData is the ULP's, without the enhanced data.
	PrivateData []byte
}

// CRCState is what is known of an FPDU's CRC.
type CRCState uint8

// The states of a CRC.
const (
	CRCUnknown CRCState = iota // the FPDU is not whole
	CRCOff                     // none was agreed on: not checked
	CRCRight
	CRCWrong
)

var crcNames = [...]string{"unknown", "off", "right", "wrong"}

func (s CRCState) String() string { return wording.Name(s, "CRC state", crcNames[:]) }

// A Chunk is what a DDP segment over SCTP has in addition.
type Chunk struct {
	SSN     uint16 // DDP-SSN
	TSN     uint32 // of the last DATA chunk
	Ahead   bool   // it came ahead of others in the order of DDP-SSNs
	Ordered bool   // without the U flag
	Chunks  int    // more than one if it was fragmented
}

// An FPDU is one FPDU in the order of the stream, and what is in it. Over SCTP it is one DDP
// segment in the order of DDP-SSNs: its bytes are those of the user message, and stream
// offsets count those of all messages of the session before it.
type FPDU struct {
	Dir    capture.Dir
	Number uint64 // of its direction, from 1
	// Offset and End are stream offsets, of the first byte (a marker in front is part
	// of the FPDU) and after the last one.
	Offset, End uint64
	First, Last capture.Stamp // the packets with its first byte, and that completed it
	// Begins and Ends tell whether a TCP segment begins and ends where it does.
	Begins, Ends bool
	Length       int // ULPDU_Length, in bytes
	Markers      []Marker
	CRC          CRCState
	Located      Location
	// Cut is how many bytes of it are missing: 0 if it is whole.
	Cut int
	// Err is what MPA finds wrong with it; a Finding says so too.
	Err *mpa.Error
	// Bytes is the FPDU as on the stream. It is nil if it is not whole.
	Bytes []byte
	// ULPDU is what goes to DDP. It is nil if the FPDU is in error, and the beginning of it
	// if the FPDU is cut.
	ULPDU []byte

	// Chunk is there over SCTP.
	Chunk *Chunk

	// HasSegment tells whether a DDP header was found. If so, Segment is the DDP segment in
	// the ULPDU, and Op the RDMAP message that its control byte names.
	HasSegment bool
	Segment    ddp.Segment
	Op         rdmap.Opcode
	// These are there if Op is one and its header is whole.
	ReadRequest *rdmap.ReadRequest
	Terminate   *rdmap.Terminate
	// RTR is the kind of RTR indication if it is one: an empty FPDU of the Initiator,
	// the first of the connection.
	RTR mpa.RTR
}

// Size returns the bytes that it takes on the stream.
func (f *FPDU) Size() int { return int(f.End - f.Offset) }

// A Marker is a marker in an FPDU.
type Marker struct {
	Offset  uint64 `json:"offset"` // stream offset
	FPDUPTR uint16 `json:"fpduptr"`
	Valid   bool   `json:"valid"` // it points to the ULPDU_Length of its FPDU
}

// Missing is bytes of a stream that are in no FPDU and in no startup frame that was
// found.
type Missing struct {
	Dir         capture.Dir
	Offset, End uint64 // stream offsets
	// Captured tells that the bytes were captured, but no FPDU was found in them.
	Captured bool
	// Cause says why they are not, if they are not Captured.
	Cause  capture.Cause
	Packet capture.Stamp // at which it was known
}

// A Read is an RDMA Read whose Response is complete.
type Read struct {
	Dir     capture.Dir   // of the Request
	Request capture.Stamp // the packet that completed the Request
	Acked   capture.Stamp // the first in which the other end's TCP acknowledges it; zero if not known
	First   capture.Stamp // and the first segment of the Response
	Last    capture.Stamp // and all of it
	rdmap.ReadRequest
}

// Latency is the time from the Request to the last byte of the Response, as seen where the
// capture was made.
func (r *Read) Latency() time.Duration { return r.Last.Time.Sub(r.Request.Time) }

// Severity is how bad a [Finding] is.
type Severity uint8

// The severities.
const (
	Note    Severity = iota // worth knowing, and allowed or harmless
	Warning                 // may be the cause of trouble, or the sign of it
	Error                   // breaks a rule of the documents
)

var severityNames = [...]string{"note", "warning", "error"}

func (s Severity) String() string { return wording.Name(s, "severity", severityNames[:]) }

// A Finding is something that is wrong or remarkable.
type Finding struct {
	// Severity is Note if packets were dropped from the capture while the connection was open: what looks like an end's
	// fault may be that.
	Severity Severity
	// Usual is what Severity is otherwise.
	Usual Severity
	// Name is a stable name of the kind, such as "crc-wrong".
	Name string
	// ID is the requirement at stake, such as "F04"; empty if there is none.
	ID     string
	Dir    capture.Dir
	Offset uint64        // stream offset
	Packet capture.Stamp // that shows it
	// Text says what was found, and Advice what to do about it. Advice may be empty.
	Text, Advice string
	// Evidence is the bytes that show it, nil if there are none to show.
	Evidence *Evidence
}

// A ULP is what a Send, a Write or a Read Request says above RDMAP, as far as that can be told. Those from before the
// protocol was known come together when it is. Memory that a message names is told of by its STag.
type ULP struct {
	Dir    capture.Dir
	Offset uint64        // of the FPDU that completed a Send, or began a Write
	Packet capture.Stamp // that completed that FPDU
	// Protocol is "RPC", "SMB Direct", "NVMe", "iSER", "rsockets" or "rping".
	Protocol string
	Text     string // one line
	// Latency is the time from the Send that this one answers, as seen where the capture was made. It is 0 if it answers
	// none, or not one that is known.
	Latency time.Duration
}
