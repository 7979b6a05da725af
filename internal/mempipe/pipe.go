package mempipe

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is one end of a connection in memory that ends as a TCP connection does: by
// halves, by FIN, or by RST if it is closed with bytes unread, after SetLinger(0), or
// if its closed end is written to. Bytes arrive in order and at once. Deadlines obey
// the clock of package time, so that it can be used within testing/synctest.
type Conn struct {
	in, out *half
	name    Address
	peer    Address
	abort   atomic.Bool // Close resets
}

// An Address is the name of an end.
type Address string

// Network returns "memory".
func (Address) Network() string { return "memory" }

// String returns the name.
func (a Address) String() string { return string(a) }

// Pipe returns the two ends of a connection in memory, whose addresses are the names
// given. Each direction holds any number of bytes: see [Conn.SetWriteBuffer].
func Pipe(nameA, nameB string) (a, b *Conn) {
	x, y := newHalf(), newHalf()
	return &Conn{in: x, out: y, name: Address(nameA), peer: Address(nameB)},
		&Conn{in: y, out: x, name: Address(nameB), peer: Address(nameA)}
}

// Read reads what has arrived. At the end it fails with io.EOF after a FIN, and with
// an error that wraps syscall.ECONNRESET after a RST.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.opError("read", err)
}

// Write sends bytes. It fails with an error that wraps syscall.ECONNRESET if the
// other end is closed, which resets the connection.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if errors.Is(err, syscall.ECONNRESET) {
		c.in.set(func() { c.in.reset = true })
	}
	return n, c.opError("write", err)
}

// opError is the error of a system's connection. io.EOF is returned as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: c.name.Network(), Source: c.name, Addr: c.peer, Err: err}
}

// CloseWrite sends a FIN.
func (c *Conn) CloseWrite() error {
	c.out.set(func() { c.out.fin = true })
	return nil
}

// SetLinger with 0 has Close reset the connection.
func (c *Conn) SetLinger(sec int) error {
	c.abort.Store(sec == 0)
	return nil
}

// SetWriteBuffer bounds the bytes that were written and that the other end has not
// read; a Write waits for room. Without a bound, or with 0, it never waits. If n is
// negative there is no buffer: a Write waits until all its bytes were read, and no Read
// returns bytes of two Writes.
func (c *Conn) SetWriteBuffer(n int) error {
	c.out.set(func() { c.out.room = n })
	return nil
}

// Close ends the connection: by FIN, or by RST if bytes were not read.
func (c *Conn) Close() error {
	abort := c.abort.Load()
	c.in.set(func() {
		abort = abort || !c.in.left && c.in.buf.Len() > 0
		c.in.left = true
	})
	c.out.set(func() {
		c.out.fin = true
		c.out.reset = c.out.reset || abort
	})
	return nil
}

// Gone waits until the other end is closed.
func (c *Conn) Gone() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for !c.out.left {
		c.out.changed.Wait()
	}
}

// LocalAddr returns the name of this end.
func (c *Conn) LocalAddr() net.Addr { return c.name }

// RemoteAddr returns the name of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.peer }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline bounds the wait of Read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.set(func() { c.in.readBy.set(t, c.in) })
	return nil
}

// SetWriteDeadline bounds the wait of Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.set(func() { c.out.writeBy.set(t, c.out) })
	return nil
}

// A half is one direction of a connection.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     bytes.Buffer
	room    int  // bounds buf, if it is above 0; negative: it holds one Write, which waits
	fin     bool // the writer has closed
	left    bool // the reader has closed
	reset   bool // the reader gets a RST
	readBy  deadline
	writeBy deadline
}

func newHalf() *half {
	h := new(half)
	h.changed = sync.NewCond(&h.mu)
	return h
}

// A deadline wakes those who wait at a half.
type deadline struct {
	at    time.Time
	alarm *time.Timer
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(t time.Time, h *half) {
	if d.alarm != nil {
		d.alarm.Stop()
	}
	d.at = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 { // else half.set wakes them anyway
		d.alarm = time.AfterFunc(wait, func() { h.set(func() {}) })
	}
}

func (h *half) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.changed.Broadcast()
}

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.left:
			return 0, net.ErrClosed
		case h.readBy.over():
			return 0, os.ErrDeadlineExceeded
		case h.buf.Len() > 0:
			n, err := h.buf.Read(b)
			h.changed.Broadcast()
			return n, err
		case h.reset:
			return 0, syscall.ECONNRESET
		case h.fin:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(b []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room < 0 {
		return h.handOver(b)
	}
	for {
		switch {
		case h.fin:
			return n, net.ErrClosed
		case h.left:
			return n, syscall.ECONNRESET
		case h.writeBy.over():
			return n, os.ErrDeadlineExceeded
		}
		k := len(b)
		if h.room > 0 {
			k = min(k, max(h.room-h.buf.Len(), 0))
		}
		h.buf.Write(b[:k])
		n, b = n+k, b[k:]
		h.changed.Broadcast()
		if len(b) == 0 {
			return n, nil
		}
		h.changed.Wait()
	}
}

// handOver is write without a buffer.
func (h *half) handOver(b []byte) (n int, err error) {
	for given := false; ; h.changed.Wait() {
		switch {
		case (given || len(b) == 0) && h.buf.Len() == 0:
			return len(b), nil
		case h.fin:
			err = net.ErrClosed
		case h.left:
			err = syscall.ECONNRESET
		case h.writeBy.over():
			err = os.ErrDeadlineExceeded
		case !given && h.buf.Len() == 0:
			given = true
			h.buf.Write(b)
			h.changed.Broadcast()
		}
		if err != nil && given {
			n = len(b) - h.buf.Len()
			h.buf.Reset()
		}
		if err != nil {
			return n, err
		}
	}
}
