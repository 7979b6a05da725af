package iwarp

import (
	"context"
	"net"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A Stack is a TCP other than that of the operating system, such as a usertcp.Stack. A [Dialer] and a [ListenConfig]
// take one. Its connections are used as any net.Conn. Their errors are those of net and os: os.ErrDeadlineExceeded,
// net.ErrClosed, a wrapped syscall.ECONNRESET; io.EOF means the peer's FIN and nothing else.
//
// Connections may have further methods, which are used if they exist.
//
// # An MPA-aware TCP
//
// An MPA-aware TCP shows bytes as soon as their segment has come, and cuts segments where it is asked to (RFC 5044,
// section 3 and appendix A). Its connections have all of these methods:
//
//	CloseWrite() error
//	Reset() error
//	ShowAhead(f func(at uint64, bytes []byte))
//	EMSS() int
//	WriteFPDUs(fpdus [][]byte) (bytes int, err error)
//
// Then FPDUs lie within segments of TCP, one beside the other: Header Alignment. If the connection also has CRCs, and
// markers in what we receive, payload is placed as soon as its segment has arrived. Segments in front of it may still
// be missing. Completions come in the order of the stream all the same, and all else is as in order. Stats.Ahead
// counts what was placed so. We ask for markers by RNICConfig.Markers, StreamAttr.MarkersReceive or the offer.
//
// CloseWrite sends a FIN after all that was written; receiving continues. Reset ends the connection at once, with a
// RST.
//
// ShowAhead registers f, which the connection calls with bytes that have arrived ahead of others. at is their place,
// counted from the byte that Read would have returned next when ShowAhead was called, which is 0. f keeps nothing. It
// is never called twice at once, and not after ShowAhead(nil) has returned. Read returns the same bytes again, at times
// even while f has them. The connection calls f with no lock held that any of its other methods takes: f may take locks
// under which they are called. ShowAhead waits until a running call of the previous f has returned. It is called
// without those locks, and not by f.
//
// EMSS returns the bytes of payload of a full segment, as of now. It does not wait.
//
// WriteFPDUs sends each slice as a unit: TCP begins a segment with the first, and never cuts one of at most EMSS bytes.
// Small ones may share a segment, which then holds whole ones. It waits until at least one is taken, and returns how
// many bytes were taken, always those of whole slices. It keeps none of them.
//
// # A connection that ends with the program
//
// The system's TCP outlives the program. A connection of a TCP in user space does not: it reports when the peer has
// everything, and QP.Close waits for that (docs/endings.md). It has the first of these methods, and may have the
// others. So may a [SegmentStream], and the net.Conn of Dialer.Wrap. If a net.Conn has a method NetConn, like tls.Conn,
// the connection below it is asked.
//
//	PeerAcked() <-chan struct{}
//	AckProgress() uint32
//	LossError() error
//	HasUnacked() bool
//	RoundTrip() time.Duration
//	Unsent() bool
//
// PeerAcked returns a channel that is closed when the peer has acknowledged the end of our half, and everything in
// front of it. It is also closed when the connection is lost, because the peer never will.
//
// AckProgress returns a different number whenever the peer has acknowledged more. Then QPConfig.CloseTimeout counts
// from the last of them, and not from Close.
//
// LossError is called when the channel of PeerAcked is closed. It says why the peer has not acknowledged everything:
// QP.Close returns that, as an ErrConnectionLost. It is nil if the peer has, and if that is not known.
//
// HasUnacked is called when Close waits no longer. It reports whether the peer has not acknowledged something in front
// of the end: that is an ErrConnectionLost too.
//
// RoundTrip returns an upper bound of the round trip to the peer as it is known below, and zero while it is unknown.
// QP.Close waits no longer than that for what the peer may have under way. Unsent reports whether bytes below were not
// sent yet: QP.Close waits for as long again after that.
//
// All of these may call the QP, except for Close, Abort and Shutdown, which wait for them.
type Stack interface {
	// DialContext opens a TCP connection; network is "tcp", "tcp4" or "tcp6".
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Listen listens for TCP connections.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// A SegmentStream carries a connection in place of TCP and MPA. Each DDP Segment is one message of it, and messages may
// arrive in any order. DDP requires (RFC 5041, section 3) that every message arrives, with its number and as it was
// sent: the stream has a checksum of its own.
//
// Its startup is over. One goroutine calls Recv, and one at a time Send. The methods that end it may be called by any
// goroutine, at any time, and more than once. Only Send, Recv and the methods that end the stream may wait.
//
// It may have more methods:
//
//   - Held(bytes int): the QP calls it with the number of bytes that it holds of what Recv returned, because segments
//     in front of them are missing. The stream can then hold its peer back.
//   - Moved() uint64 is for a stream that shares its path with others. It returns how many bytes that path has moved,
//     without those that came for this stream. They count as progress of a QP.Close.
//   - Those of a connection that ends with the program, as a [Stack] has them.
//
// The QP calls all of these with no lock held: they may call it, except for Close, Abort and Shutdown, which wait for
// them.
type SegmentStream interface {
	// Send sends whole segments, in that order. It waits until it has taken one at least, and
	// returns how many bytes it has taken, always those of whole segments. What it has
	// taken arrives, unless the connection is lost (RFC 5041, section 5.4). It keeps none of
	// the slices.
	Send(segments [][]byte) (n int, err error)
	// Recv waits for a segment, in whatever order they come, or for the end of the
	// peer's half. An error is the end of the connection.
	Recv() (SegmentArrival, error)
	// MULPDU returns the largest segment that Send takes now, in bytes: 128 at least. It does
	// not wait.
	MULPDU() int
	// Bounds says what may have to be held of segments that come ahead of others.
	Bounds() SegmentBounds
	// CloseWrite ends our half in order, after all that Send has taken. Receiving continues.
	CloseWrite() error
	// Close is called when both halves have ended, and Reset to end the connection at once.
	// Both end a Recv and a Send that wait.
	Close() error
	Reset() error
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

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
// loses the connection. So a [SegmentStream] names bounds that a peer cannot exceed as long as it keeps the rules. A
// stream with a method Held makes the peer wait before it gets there.
type SegmentBounds struct {
	First    uint64 // number of the peer's first segment
	Segments int    // zero: 1024
	Bytes    int    // zero: 256 KiB; not counted are those that are placed as they come
}

// A SegmentNetwork carries connections in place of TCP and MPA: an iwarpsctp.Network does so over SCTP (RFC 5043). A
// [Dialer] and a [ListenConfig] take one. It begins each connection by messages of its own. They say what the startup
// frames of MPA say: private data, depths, and Ready-to-Receive indications (RFC 6581, section 7). What it has begun
// is a [SegmentStream].
//
// Presets, limits, and the bounds of a Listener hold as over TCP. There are no markers, CRCs and revisions of MPA.
//
// Package mpa does the negotiation. mpa.Offer.Resolved and Enhanced say what a request has to carry beside the private
// data. The other end fills in its mpa.Request by Ask, and answers by what mpa.Answer.Check and Conclude say. Then
// mpa.Offer.Conclude completes the mpa.Negotiated of the end that asked. That of either end has its Role, a Dialect
// (mpa.DialectRFC6581 where the depths are negotiated, otherwise mpa.DialectRFC5044), the PrivateData of the peer, and
// 1 as DDPVersion and RDMAPVersion. SendFirst is set if both ends may send at once.
type SegmentNetwork interface {
	// Dial asks the peer at an address for a connection, and waits for its answer. Of net.Dialer it uses what applies,
	// such as LocalAddr. The Timeout of the offer bounds the wait for the answer.
	//
	// What the network cannot do is an error before anything is sent. It wraps ErrInvalid, or mpa.ErrOffer if the offer
	// is at fault. The error wraps an *mpa.RejectError if the peer's consumer has rejected the connection. With an
	// error that has a method Fallback() (refused, plain string), Dial is called once more, with mpa.DialectRFC5044:
	// the words complete "the responder ..." and "trying again with ...". Where something is left of an attempt that
	// has failed, Dial returns the session too. It is closed when its channel of PeerAcked is, or a second later.
	//
	// network is the name that Dialer.Dial was given. Which ones there are is for the SegmentNetwork to say.
	Dial(
		ctx context.Context, network, address string, from *net.Dialer, offer mpa.Offer,
	) (SegmentSession, mpa.Negotiated, error)
	// Listen listens at an address. Of net.ListenConfig it uses what applies. A peer that asks for nothing within the
	// time called unused loses its path to us; if that is negative, it may take its time.
	Listen(
		ctx context.Context, network, address string, with *net.ListenConfig, unused time.Duration,
	) (SegmentListener, error)
}

// A SegmentSession is a connection of a [SegmentNetwork], from its startup on.
type SegmentSession interface {
	SegmentStream
	// PeerAcked is as a [Stack] has it. The channel is closed, too, when the peer has our rejection.
	PeerAcked() <-chan struct{}
	// Cancel takes the request for the connection back, turns it down, or ends in order a connection over which nothing
	// was sent yet. What the peer sends is dropped. Cancel does not wait.
	Cancel() error
}

// A SegmentRequest is a peer's request for a connection of a [SegmentNetwork]. It is answered once. Close turns it down
// without an answer of the consumer.
type SegmentRequest interface {
	SegmentSession
	// Request returns what the peer asks for. Its Dialect is that of the mpa.Negotiated, and its Revision 0.
	Request() *mpa.Request
	// Accept answers, and returns what is agreed on. An error that wraps mpa.ErrOffer leaves the request as it is.
	Accept(answer mpa.Answer) (mpa.Negotiated, error)
	// Reject answers, too, with the depths that would have been acceptable. Its errors are as those of Accept.
	Reject(privateData []byte, ird, ord mpa.Depth) error
}

// A SegmentListener is what a [SegmentNetwork] listens with.
type SegmentListener interface {
	// Accept waits for a peer that opens a path to us. One goroutine calls it. An error is the end of the listener.
	Accept(ctx context.Context) (SegmentPeer, error)
	Addr() net.Addr
	// Close lets nobody in any more. Existing connections continue.
	Close() error
}

// A SegmentPeer is a path by which a peer asks for connections: over SCTP, an association. It counts as half-open until
// the first request has come.
type SegmentPeer interface {
	// Accept waits for the next request. One goroutine calls it. When it has returned an error it is not called again:
	// what the peer asks for is turned down then. If the context has ended, and the peer has never asked for anything,
	// the path ends.
	Accept(ctx context.Context) (SegmentRequest, error)
	// Abort ends the path at once, with all connections of it, and tells the peer why. It may wait for that.
	Abort(why string)
	RemoteAddr() net.Addr
}
