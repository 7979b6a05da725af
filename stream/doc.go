// Package stream carries byte streams over RDMA. Its Conn is a net.Conn over a QP of package iwarp, and its Listener
// a net.Listener. It speaks version 1 of rdma-core's rsockets protocol. So the peer can be this package, a program
// that uses rsockets, such as rstream, or a TCP program under librspreload.
//
//	conn, err := stream.Dial(ctx, "tcp", "host:port") // SCTP or a Stack: see Dialer.RDMA
//	ln, err := stream.Listen(ctx, "tcp", ":port")
//
// # How bytes move
//
// Each end has a ring in registered memory, and tells its peer how much of it is free. Write places bytes there by
// RDMA Writes. Up to 1 KiB is copied first; more is sent from the caller's memory. After each piece, a Send of four
// bytes tells its length: rsockets calls such a message a word. Read copies bytes out of the ring; WriteTo passes
// them on without a copy. As with TCP, an end that does not read stops its peer. Map lets the peer write into memory
// that the caller chooses, without a copy at either end.
//
// A Conn has no goroutine but those of its QP. A call that waits polls for words of the peer, on behalf of all calls.
// Package rsockets has the state of the protocol without I/O. docs/stream.md has the details.
//
// # How a connection ends
//
// CloseWrite ends one direction: the peer reads io.EOF. Close ends both, and waits until everything written was sent
// and the peer's side has closed, too. What Write has taken is lost only if the error of Close says so.
//
// If the connection ends without a word of the peer, Read returns io.ErrUnexpectedEOF or the error of the QP. That
// happens when the peer's program is killed, or when the network fails. An error of a Conn is net.ErrClosed only
// after Close at this end. Package iwarp differs: its ErrClosed, which is net.ErrClosed, is of any QP that has ended.
//
// # Security
//
// The stream is as secure as its connection: see iwarp.Dialer.Wrap, or run crypto/tls over the Conn.
package stream
