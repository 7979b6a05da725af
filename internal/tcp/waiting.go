package tcp

import (
	"net"
	"syscall"
)

// Waiting reports whether octets have arrived that nobody has read, as far as can be told without
// waiting and without taking them: on sockets of Unix-like systems.
func Waiting(c net.Conn) bool {
	c, ahead := unwrap(c)
	for _, r := range ahead {
		if r.Buffered() > 0 {
			return true
		}
	}
	s, ok := c.(syscall.Conn)
	return ok && peek(s)
}
