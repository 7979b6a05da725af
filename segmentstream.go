package iwarp

import "net"

// A SegmentStream carries a connection in place of TCP and MPA: each DDP Segment is one message of it, and messages may
// arrive in any order. DDP requires (RFC 5041, section 3) that every message arrives, with its number and as it was
// sent: the stream has a checksum of its own.
//
// Its startup is over. One goroutine calls Recv and one at a time Send; those methods that end it may be called by any, at any time, and more
// than once. One that is a [SegmentHolder] too is told what is held, and one that is an [EndTeller] is waited for at the end. A SegmentStream
// that shares its path with others may have a method Moved() uint64, which returns how many octets that path has moved, without those that came
// for this stream: they count as progress of a QP.Close. Where the stream has methods RoundTrip and Unsent they are as a [SegmentedConn]'s. The
// QP calls all of these with no lock held: they may call it, except for Close, Abort and Shutdown, which wait for them. Only Send, Recv and the
// methods that end the stream may wait.
type SegmentStream interface {
	// Send sends whole segments, in that order. It waits until it has taken one at least, and
	// returns how many octets it has taken, which are those of whole segments. What it has
	// taken arrives, unless the connection is lost (RFC 5041, section 5.4). It keeps none of
	// the slices.
	Send(segments [][]byte) (octets int, err error)
	// Recv waits for a segment, in whatever order they come, or for the end of the
	// peer's half. An error is the end of the connection.
	Recv() (SegmentArrival, error)
	// MULPDU returns the largest segment that Send takes now, in octets: 128 at least. It does
	// not wait.
	MULPDU() int
	// Bounds says what may have to be held of segments that come ahead of others.
	Bounds() SegmentBounds
	// CloseWrite ends our half in order, after all that Send has taken. Receiving goes on.
	CloseWrite() error
	// Close is called when both halves have ended, and Reset to end the connection at once.
	// Both end a Recv and a Send that wait.
	Close() error
	Reset() error
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// A SegmentHolder is a [SegmentStream] that is told how many octets are held of what Recv has brought, as segments in
// front of it are missing, so that it can hold its peer back. Held does not wait.
type SegmentHolder interface{ Held(octets int) }

// A SegmentArrival is what a [SegmentStream] brings.
type SegmentArrival struct {
	// Number counts the segments that the peer has sent, in order: SegmentBounds.First is the
	// first. It does not wrap.
	Number uint64
	// Segment is valid until the next Recv.
	Segment []byte
	// End says, in place of a segment, that the peer's half ends before Number. It may
	// come before the segments in front of it.
	End bool
	// Err says, in place of a segment, that the peer has broken a rule of the layer. Everything below
	// Number was right. Nothing more comes from it; what is sent in answer, such as a Terminate, still goes
	// out.
	Err error
}

// SegmentBounds say what may have to be held of segments that come ahead of others. A peer that sends more of them
// loses the connection: so a [SegmentStream] names bounds that a peer cannot exceed as long as it keeps the rules, and
// a [SegmentHolder] makes the peer wait before it gets there.
type SegmentBounds struct {
	First    uint64 // number of the peer's first segment
	Segments int    // zero: 1024
	Octets   int    // zero: 256 KiB; not counted are those that are placed as they come
}
