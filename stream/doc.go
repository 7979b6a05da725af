// Package stream carries streams of octets over RDMA: a net.Conn and a net.Listener over QPs of package iwarp, by
// version 1 of the protocol of rdma-core's rsockets. So the other end may be this package, a program of rsockets such
// as rstream, or any program of TCP that runs under librspreload.
//
//	conn, err := stream.Dial(ctx, "tcp", "host:port") // also over "sctp", and over a Stack
//	ln, err := stream.Listen(ctx, "tcp", ":port")
//
// # What goes where
//
// Each end has a ring in registered memory, of which it tells the other how much is free. Write places octets there by
// RDMA Writes, straight from the caller's memory unless there are few of them, and announces each piece by a Send of
// four octets. Read copies them out of the ring; WriteTo passes them on without a copy. An end that does not read holds
// its peer up, as with TCP. Map lets the peer write into memory of the caller's choice instead, with no copy at either
// end.
//
// A connection has no goroutine of its own beside those of its QP: whoever waits in Read or Write takes in what arrives, for the others too.
// Package rsockets keeps account of all that, and docs/stream.md has the rest.
//
// # How it ends
//
// CloseWrite ends one direction. Close ends both, and waits until what was written has been sent and the peer's side has taken it: what Write has
// taken is lost only if the error of Close says so. The reader has io.EOF then. If the connection ends without such a word, because
// the peer's program was killed or the network has failed, Read returns io.ErrUnexpectedEOF or the QP's error. An error is net.ErrClosed only
// after Close at this end, whereas iwarp.ErrClosed, which is the same, is of any end: the QP has that.
// The stream has no security but that of the connection: see iwarp.Dialer.Wrap, or run crypto/tls over the Conn.
package stream
