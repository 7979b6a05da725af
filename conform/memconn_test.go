package conform_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A stream is one direction of a connection in memory. It takes any number of
// octets, and its deadlines obey virtual time.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     []byte
	fin     bool  // the writer has closed
	left    bool  // the reader has closed
	reset   error // by the other end
	until   time.Time
	alarm   *time.Timer
}

func newStream() *stream {
	s := new(stream)
	s.changed = sync.NewCond(&s.mu)
	return s
}

// errReset is what a connection in memory reports after a RST.
var errReset = errors.New("connection reset by peer")

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.left:
			return 0, net.ErrClosed
		case len(s.buf) > 0:
			n := copy(b, s.buf)
			s.buf = s.buf[n:]
			return n, nil
		case s.reset != nil:
			return 0, s.reset
		case s.fin:
			return 0, io.EOF
		case !s.until.IsZero() && !time.Now().Before(s.until):
			return 0, os.ErrDeadlineExceeded
		}
		s.changed.Wait()
	}
}

// write reports false if nobody will read it.
func (s *stream) write(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return false
	}
	s.buf = append(s.buf, b...)
	s.changed.Broadcast()
	return true
}

func (s *stream) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

func (s *stream) setDeadline(t time.Time) {
	s.set(func() {
		if s.alarm != nil {
			s.alarm.Stop()
		}
		if s.until = t; !t.IsZero() {
			s.alarm = time.AfterFunc(time.Until(t), func() { s.set(func() {}) })
		}
	})
}

// memConn is one end of a connection that behaves as TCP does: it closes by halves,
// and is reset if it is closed with octets unread or written to after that.
type memConn struct {
	in, out *stream
	name    memAddr
	peer    memAddr
	linger  bool
}

type memAddr string

func (memAddr) Network() string  { return "memory" }
func (a memAddr) String() string { return string(a) }

func newConns() (suite, endpoint *memConn) {
	a, b := newStream(), newStream()
	return &memConn{in: a, out: b, name: "suite", peer: "endpoint", linger: true},
		&memConn{in: b, out: a, name: "endpoint", peer: "suite", linger: true}
}

func (c *memConn) Read(b []byte) (int, error) { return c.in.read(b) }

func (c *memConn) Write(b []byte) (int, error) {
	if !c.out.write(b) {
		c.in.set(func() { c.in.reset = errReset })
		return 0, errReset
	}
	return len(b), nil
}

func (c *memConn) CloseWrite() error {
	c.out.set(func() { c.out.fin = true })
	return nil
}

// SetLinger with 0 has Close reset the connection.
func (c *memConn) SetLinger(sec int) error {
	c.linger = sec != 0
	return nil
}

func (c *memConn) Close() error {
	rst := !c.linger
	c.in.set(func() {
		rst = rst || !c.in.left && len(c.in.buf) > 0
		c.in.left = true
	})
	c.out.set(func() {
		c.out.fin = true
		if rst {
			c.out.reset = errReset
		}
	})
	return nil
}

// gone waits until the other end has closed the connection.
func (c *memConn) gone() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for !c.out.left {
		c.out.changed.Wait()
	}
}

func (c *memConn) LocalAddr() net.Addr               { return c.name }
func (c *memConn) RemoteAddr() net.Addr              { return c.peer }
func (c *memConn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }
func (c *memConn) SetWriteDeadline(time.Time) error  { return nil }
func (c *memConn) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }

// memListener hands out connections in memory.
type memListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr("endpoint") }

func (l *memListener) offer(ctx context.Context, c net.Conn) error {
	select {
	case l.conns <- c:
		return nil
	case <-l.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
