package tcp

import "net"

// Waiting reports whether bytes have arrived that nobody has read, as far as can be told without
// waiting and without taking them: on sockets of the standard library's, on Unix-like systems.
func Waiting(c net.Conn) bool {
	c, ahead := unwrap(c)
	for _, r := range ahead {
		if r.Buffered() > 0 {
			return true
		}
	}
	switch s := c.(type) {
	case *net.TCPConn:
		return peek(s)
	case *net.UnixConn:
		return peek(s)
	}
	return false // also where a socket is embedded: its bytes may not be those of the connection
}

// Knocks reports whether a connection waits to be accepted. Where that is not known it is true: for listeners that are
// not the standard library's, and on systems that are not like Unix.
func Knocks(ln net.Listener) bool {
	if t, ok := ln.(*net.TCPListener); ok {
		return readable(t)
	}
	return true
}
