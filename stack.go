package iwarp

import (
	"context"
	"net"
)

// A Stack is a TCP other than that of the operating system, such as a usertcp.Stack. A [Dialer] and a [ListenConfig]
// take one. Its connections are used as any net.Conn. One that is aware of MPA (RFC 5044, section 3)
// does more:
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
