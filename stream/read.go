package stream

import (
	"io"
	"os"
)

var errDeadline = os.ErrDeadlineExceeded

// Read copies bytes that have arrived to p, and waits if there are none. At the end of the stream it returns io.EOF.
// If the connection has ended otherwise, the error wraps io.ErrUnexpectedEOF or is that of the QP. Errors but io.EOF
// are *net.OpError.
func (c *Conn) Read(p []byte) (n int, err error) {
	if !c.made() {
		return 0, c.opError("read", errNoConn)
	}
	n, err = c.read(p)
	return n, c.opError("read", err)
}

func (c *Conn) read(p []byte) (n int, err error) {
	if err := c.enter(&c.rd); err != nil {
		return 0, err
	}
	defer c.rd.gate.leave()
	if len(p) == 0 {
		return 0, nil
	}
	return c.copyOut(p)
}

// copyLimit is how many bytes are copied at most while other calls wait for c.mu.
const copyLimit = 4 << 10

// copyOut waits until there are bytes to read, and copies as many as p has room for.
func (c *Conn) copyOut(p []byte) (n int, err error) {
	var at, there int
	waited := c.await(&c.rd, func() bool {
		if at, there = c.readable(len(p)); there > 0 && there <= copyLimit {
			n, err = c.copyFrom(at, p[:there])
			c.consume(there)
		}
		return there > 0 || c.ep.PeerEnded()
	})
	switch {
	case waited != nil:
		return 0, waited
	case there == 0:
		return 0, io.EOF
	case there > copyLimit:
		n, err = c.copyFrom(at, p[:there])
		c.giveBack(there)
	}
	return n, err
}

// copyFrom copies bytes of the ring. It fails if the Conn was closed meanwhile, as the memory is gone then.
func (c *Conn) copyFrom(at int, p []byte) (int, error) {
	if _, err := c.ring.ReadAt(p, int64(at)); err != nil {
		return 0, errClosed
	}
	return len(p), nil
}

// readable returns where in the ring the next bytes are, and how many: limit at most. They stay there until the call
// that is in rd gives them back. The caller holds c.mu.
func (c *Conn) readable(limit int) (at, n int) {
	at, n = c.ep.Readable()
	return at, min(n, limit)
}

// consume gives bytes of the ring back to the peer. The caller holds c.mu.
func (c *Conn) consume(n int) {
	c.ep.Consume(n)
	c.announce()
}

// giveBack is consume for a caller that does not hold c.mu.
func (c *Conn) giveBack(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.consume(n)
}

// WriteTo writes what arrives to w until the stream ends. It implements io.WriterTo. w gets the ring's memory, and no
// copy of it: a peer that breaks the protocol can change it while w reads it. The error is that of w, or that of Read
// except io.EOF.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	if !c.made() {
		return 0, c.opError("read", errNoConn)
	}
	for {
		m, err := c.writeStretch(w)
		n += int64(m)
		if err == io.EOF { //nolint:errorlint // It is our own.
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// writeStretch is one step of WriteTo.
func (c *Conn) writeStretch(w io.Writer) (n int, err error) {
	if err := c.enter(&c.rd); err != nil {
		return 0, c.opError("read", err)
	}
	defer c.rd.gate.leave()
	var at, there int
	waited := c.await(&c.rd, func() bool {
		at, there = c.readable(maxPiece)
		return there > 0 || c.ep.PeerEnded()
	})
	switch {
	case waited != nil:
		return 0, c.opError("read", waited)
	case there == 0:
		return 0, io.EOF
	}
	n, err = w.Write(c.ring.Bytes()[at : at+there])
	n = min(max(n, 0), there)
	c.giveBack(n)
	if err == nil && n < there {
		err = io.ErrShortWrite
	}
	return n, err
}
