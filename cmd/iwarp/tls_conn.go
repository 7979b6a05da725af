package main

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
)

// A secureConn is a connection that this end has opened, through TLS. Its first Write has the handshake made.
type secureConn struct{ *tls.Conn }

// Write writes, and tells the end of a handshake from that of a startup.
func (c secureConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.handshakes(err)
}

// Read reads.
func (c secureConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.handshakes(err)
}

func (c secureConn) handshakes(err error) error {
	ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	if !ended || c.ConnectionState().HandshakeComplete {
		return err
	}
	return errHandshake
}

// errHandshake is the end of a connection amid the handshake. It is neither io.EOF nor a reset of the stream, of which there was none.
var errHandshake = errors.New("the peer closed the connection in the TLS handshake: it may have no TLS, or no version 1.3 of it")
