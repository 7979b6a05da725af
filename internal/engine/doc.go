// Package engine composes MPA, DDP and RDMAP into one endpoint of one
// connection: a Queue Pair from the moment the startup frames are exchanged.
//
// It does no I/O, starts no goroutine and reads no clock. It is given octets
// (Input), posted work (PostSend, PostReceive) and the time (HandleTimeout);
// it gives back octets to send (Output), completions and notices (Drain), the
// time at which it wants to be called next (Deadline) and what is to become of
// the TCP connection (LLP). Everything an RFC asks of a stream in Full
// Operation is decided here or in the layers below, so that it can be tested as
// a dialogue and used without a socket.
//
// A QP is not safe for concurrent use: its driver holds one lock around it.
package engine
