package iwarp

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp/internal/carrier"
)

// A Stack is a TCP other than that of the operating system, such as a usertcp.Stack. A [Dialer] and a [ListenConfig]
// take one. Its connections are used as any net.Conn. With those that are a [SegmentedConn], as those of an MPA-aware
// TCP are (RFC 5044, section 3), there is more:
//
//   - FPDUs lie within segments of TCP, one beside the other: Header Alignment;
//   - where the connection has markers in what we receive, and CRCs, payload is placed as soon as its segment
//     has arrived, also while segments in front of it are missing. Completions come in the order of
//     the stream all the same, and all else is as in order. Stats.Ahead counts what was placed so.
//
// We ask for markers by RNICConfig.Markers, StreamAttr.MarkersReceive or the offer.
type Stack interface {
	// DialContext opens a TCP connection; network is "tcp", "tcp4" or "tcp6".
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Listen listens for TCP connections.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// A SegmentedConn is a connection of an MPA-aware TCP (RFC 5044, section 3 and appendix A): one
// that shows octets as soon as their segment has come, and cuts segments where it is told to.
//
// Its errors are those of net and os: os.ErrDeadlineExceeded, net.ErrClosed, a wrapped syscall.ECONNRESET; io.EOF means
// the peer's FIN and nothing else. A SegmentedConn that ends with the program is an [EndTeller], too. It may have a
// method RoundTrip() time.Duration, which returns an upper bound of the round trip to the peer as its TCP knows it, and
// zero while it does not: QP.Close waits no longer than that for what the peer may have under way. It may have a method
// Unsent() bool, which reports whether its TCP has octets that it has not sent yet: QP.Close waits for as long again
// after that.
type SegmentedConn interface {
	net.Conn
	// CloseWrite sends a FIN after all that was written. Receiving goes on.
	CloseWrite() error
	// Reset ends the connection at once, with a RST.
	Reset() error
	// ShowAhead has f called with octets that have arrived ahead of others. at is their
	// place, counted from the octet that Read would have returned next when ShowAhead was
	// called, which is 0. f keeps nothing. It is never called twice at once, and not after
	// ShowAhead(nil) has returned. What was shown comes by Read again, at times even while it
	// is shown. The conn calls f with no lock held that any of its other methods
	// takes, so that f may take locks under which they are called. ShowAhead itself waits for a
	// call of the f before it to return: it is called without those locks, and not by f.
	ShowAhead(f func(at uint64, octets []byte))
	// EMSS returns the octets of payload of a full segment, as of now. It does not wait.
	EMSS() int
	// WriteFPDUs sends each slice as a unit: TCP begins a segment with the first, and never
	// cuts one that is at most EMSS octets long. Small ones may share a segment, which then
	// holds whole ones. It waits until at least one is taken, and returns how many octets
	// were, which are those of whole slices. It keeps none of them.
	WriteFPDUs(fpdus [][]byte) (octets int, err error)
}

// What the layers below look for, in a connection of whatever type, is just this.
var (
	_ carrier.SegmentedConn = SegmentedConn(nil)
	_ SegmentedConn         = carrier.SegmentedConn(nil)
)
