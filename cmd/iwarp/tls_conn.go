package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// A secureConn is a connection that this end has opened, through TLS. Its first Write has the handshake made.
type secureConn struct {
	*tls.Conn
	namedCA bool // there is --tls-ca
}

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
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)) && c.namedCA:
		return fmt.Errorf("%w; nobody in the file of --tls-ca vouches for it", err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%w; --tls-ca names the file of who vouches for it, or of the certificate itself if that is nobody else", err)
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Errorf("%w; --tls-name says which name it is to have", err)
	}
	ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	if !ended || c.ConnectionState().HandshakeComplete {
		return err
	}
	return errHandshake
}

// errHandshake is the end of a connection amid the handshake. It is neither io.EOF nor a reset of the stream, of which
// there was none.
var errHandshake = errors.New("the peer closed the connection in the TLS handshake: it may have no TLS, or no version 1.3 of it")
