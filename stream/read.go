package stream

import (
	"io"
	"os"
)

var errDeadline = os.ErrDeadlineExceeded

// Read copies octets that have arrived to p, and waits for some if there are none. At the end of the stream it is
// io.EOF; where the connection has ended without one, an error that wraps io.ErrUnexpectedEOF or is the QP's. Errors are *net.OpError.
func (c *Conn) Read(p []byte) (n int, err error) {
	n, err = c.read(p)
	return n, c.opError("read", err)
}

func (c *Conn) read(p []byte) (n int, err error) {
	if err := c.enter(&c.rd, c.reading); err != nil {
		return 0, err
	}
	defer c.reading.leave()
	if len(p) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, n, err := c.readableUnlocking()
	if n == 0 {
		return 0, err
	}
	n = min(n, len(p))
	if c.copyUnlocking(p[:n], at) != nil {
		return 0, errClosed
	}
	c.consume(n)
	return n, nil
}

// copiedLocked is how many octets are copied at most while others wait for the lock.
const copiedLocked = 4 << 10

// copyUnlocking copies octets out of the ring. It is called with c.mu held, and releases it while it copies many.
func (c *Conn) copyUnlocking(p []byte, at int) error {
	if len(p) > copiedLocked {
		c.mu.Unlock()
		defer c.mu.Lock()
	}
	_, err := c.ring.ReadAt(p, int64(at))
	return err
}

// enter takes a direction's turn. With no error the caller has to leave the gate.
func (c *Conn) enter(d *deadline, g gate) error {
	if g.enter(d.context()) == nil {
		return nil
	}
	if c.isClosed() {
		return errClosed
	}
	return errDeadline
}

// hasSome reports whether a Read need not wait.
func hasSome(c *Conn) bool {
	_, n := c.ep.Readable()
	return n > 0 || c.ep.PeerEnded()
}

// readableUnlocking waits for octets, and returns where in the ring they are. It is called with c.mu held, and releases it while it waits.
func (c *Conn) readableUnlocking() (at, n int, err error) {
	if err := c.awaitUnlocking(&c.rd, hasSome); err != nil {
		return 0, 0, err
	}
	if at, n = c.ep.Readable(); n == 0 {
		err = io.EOF
	}
	return at, n, err
}

// consume gives octets of the ring back. The caller has c.mu.
func (c *Conn) consume(n int) {
	c.ep.Consume(n)
	c.announce()
}

// WriteTo writes what arrives to w until the stream ends. w gets the memory into which the peer has written, and no
// copy of it: a peer that breaks the protocol can change it while w looks at it. It implements io.WriterTo; the error
// is that of w, or that of Read, except io.EOF.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	for {
		m, err := c.lend(w)
		n += int64(m)
		if err == io.EOF { //nolint:errorlint // It is our own.
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// lend is one step of WriteTo.
func (c *Conn) lend(w io.Writer) (n int, err error) {
	if err := c.enter(&c.rd, c.reading); err != nil {
		return 0, c.opError("read", err)
	}
	defer c.reading.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	at, n, err := c.readableUnlocking()
	if err != nil {
		return 0, c.opError("read", err)
	}
	n = min(n, maxPiece)
	m, err := c.lendUnlocking(w, at, n)
	m = min(max(m, 0), n)
	c.consume(m)
	if err == nil && m < n {
		err = io.ErrShortWrite
	}
	return m, err
}

// lendUnlocking passes octets of the ring to w. It is called with c.mu held, and releases it meanwhile.
func (c *Conn) lendUnlocking(w io.Writer, at, n int) (int, error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	return w.Write(c.ring.Bytes()[at : at+n])
}
