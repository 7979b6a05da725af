// Package datagram carries what Queue Pairs of unreliable datagrams (UD) send, over UDP: the header that is before the
// payload in each datagram, the addresses that a receive has before its payload, and the socket.
//
// The convention is our own, of which nobody else knows; docs/dev/programs.md has it. The number of a QP is a port of
// UDP and, in the lower 8 bits, one of its QPs; a GID is an address. So both together say where a datagram goes to.
package datagram
