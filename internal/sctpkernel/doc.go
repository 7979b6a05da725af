// Package sctpkernel carries the user messages of package sctp by the SCTP of the system's kernel, in IP protocol 132
// or, where the system is set up so, in UDP (RFC 6951). There is one on Linux, in the module sctp; elsewhere every call
// is an error that wraps errors.ErrUnsupported.
//
// The socket API is that of RFC 6458: one-to-many sockets, since only those can give the reason of an ABORT. Each
// association is peeled off into a descriptor of its own, which Go's poller watches: no thread waits in a system call.
// The kernel does not tell which messages have been acknowledged: a stream's count is taken when nothing on the socket
// is not. At the end of the process the kernel delivers what was sent, and shuts the association down.
package sctpkernel
