package startup

import "net"

// A handshakeError is that of a startup which had not begun when its time was over, as TLS below it had not come to its end.
type handshakeError struct{ error }

// Error says so, and leaves out what is said of frames.
func (handshakeError) Error() string {
	return "the TLS handshake did not come to its end in the time for the startup: the peer has no TLS, or says nothing"
}

// Unwrap returns the machine's error.
func (e handshakeError) Unwrap() error { return e.error }

// below has a timeout say whether it was TLS's.
func (g guard) below(timeout error) error {
	if timeout != nil && inHandshake(g.conn) {
		return handshakeError{timeout}
	}
	return timeout
}

// inHandshake reports whether a connection that has failed is one of TLS, as a tls.Conn is, whose handshake is not complete: Handshake returns
// at once then, with what it has failed with.
func inHandshake(c net.Conn) bool {
	for {
		if secure, ok := c.(interface{ Handshake() error }); ok {
			return secure.Handshake() != nil
		}
		on, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		c = on.NetConn()
	}
}
