package tcp

import (
	"bufio"
	"errors"
	"net"
)

// Buffered is a connection that a reader has read ahead of. Its Read takes what
// that has buffered first, and then goes to the connection itself: not a byte is
// read ahead by it, so that the two can be used in turns.
type Buffered struct {
	net.Conn
	ahead *bufio.Reader
}

// NewBuffered returns c with what r, which reads from c, has buffered in front.
func NewBuffered(c net.Conn, r *bufio.Reader) *Buffered { return &Buffered{c, r} }

// Read reads what is buffered, and from the connection only if there is nothing.
func (b *Buffered) Read(p []byte) (int, error) {
	if n := b.ahead.Buffered(); n > 0 {
		return b.ahead.Read(p[:min(n, len(p))])
	}
	return b.Conn.Read(p)
}

// NetConn returns the connection without what is buffered.
func (b *Buffered) NetConn() net.Conn { return b.Conn }

// CloseWrite closes our half, where the connection has halves.
func (b *Buffered) CloseWrite() error { return CloseWrite(b.Conn) }

// CloseWrite sends a FIN, where a connection can be closed by halves. Otherwise the
// error is errors.ErrUnsupported.
func CloseWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// unwrap returns the connection itself and the readers that have read ahead of it,
// the one whose bytes come first in front.
func unwrap(c net.Conn) (net.Conn, []*bufio.Reader) {
	var ahead []*bufio.Reader
	for {
		b, ok := c.(*Buffered)
		if !ok {
			return c, ahead
		}
		ahead = append(ahead, b.ahead)
		c = b.Conn
	}
}

// recvAhead is Recv of bytes that were read ahead, as many as the receive buffer has
// room for. It reports false if there are none left.
func (c *Conn) recvAhead() bool {
	c.rx.mu.Lock()
	for ; len(c.ahead) > 0; c.ahead = c.ahead[1:] {
		if n := c.ahead[0].Buffered(); n > 0 {
			p := c.rx.room()
			// It has no error to give while bytes are buffered, and does not read more.
			n, _ = c.ahead[0].Read(p[:min(n, len(p))])
			c.rx.w += n
			return true
		}
	}
	c.isAhead.Store(false)
	c.rx.mu.Unlock()
	return false
}
