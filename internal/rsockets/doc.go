// Package rsockets is version 1 of the protocol by which rdma-core's rsockets carry streams of bytes over a QP: its
// formats, and what each end keeps account of. It does no I/O.
//
// Each end has a ring in registered memory, into which its peer places bytes by RDMA Writes, and a table of
// entries in which the peer says where in its own ring it takes the next ones. Both are told of in the private data
// of the connection's Request and Reply (Hello). After each Write a Send of four bytes (Word) says how much was
// written. The same words return credits, as each Send takes a receive of the peer's, and end the stream.
//
// An Endpoint has one end's account: a Sender, a Receiver and how far the ends of the two directions have come. Whoever
// drives it carries out what it says, in that order, and gives it each word that arrives.
//
// There is no document of the protocol but the code of rdma-core. What that leaves open is decided so: a word that it
// never sends, a piece that does not lie in what was announced, or one without a credit is an *Error, after which
// the connection is to end. The numbers of a peer never lead to a byte outside the ring.
package rsockets
