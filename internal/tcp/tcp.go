// Package tcp moves bytes between a driver and a socket. It knows what the operating system offers: reading and writing
// without waiting, gathered writes, the ends of records, receive buffers, the effective MSS (words.go sees to one that
// is a multiple of four) and the round trip. role.go says which of a connection's goroutines and consumers receives.
// The package knows no protocol.
//
// Where the connection is not a TCP socket of a Unix system, the plain net.Conn calls do the same work: TrySend then
// never takes anything, and Recv reads through a small buffer of the connection's own.
package tcp

import (
	"bufio"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/spin"
)

// BufferSize is the size of a pooled receive buffer in bytes: room for the
// largest FPDU and most of a second. What is read is checked and copied while it
// is in the processor's cache; twice the size gave a tenth less on loopback.
const BufferSize = 128 << 10

var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// Conn is the socket of one connection. One goroutine may Recv while another
// sends; Close may be called by any.
type Conn struct {
	net.Conn
	raw  *rawConn // nil: not a socket that can be used directly
	base *rawConn // whose EMSS it is; nil: not known
	rx   rx
	role role
	spin *spin.Spinner // of who has the role
	// poked tells who looks that its wait is interrupted; inside, that the other end is in this process.
	poked, inside atomic.Bool
	isAhead       atomic.Bool // there may be bytes in ahead
	quiet         bool        // looks of who has the role have suppressed wake-ups
	records       bool        // what EndRecords has set
	// Of an MPA-aware TCP, else nil: segments is the connection, and below what one that is none is built on.
	segments, below lowerlayer.SegmentedConn
	bufs            net.Buffers // of Send, where there is no raw
	// ahead have bytes that come before those of the connection: see Buffered. Only Recv reads them.
	ahead []*bufio.Reader
}

// New wraps a connection in which the startup phase is over. Of one that is Buffered
// the bytes buffered come first, and then the socket is used directly.
func New(c net.Conn) *Conn {
	c, ahead := unwrap(c)
	t := &Conn{Conn: c, raw: newRaw(c), ahead: ahead}
	t.isAhead.Store(len(ahead) > 0)
	if t.base = t.raw; t.raw == nil {
		t.base = newRaw(basis(c))
		t.segments, t.below = segmented(c), segmented(basis(c))
		t.rx.small = make([]byte, smallSize)
		return t
	}
	t.raw.rx = &t.rx
	return t
}

// SendAtOnce turns the Nagle algorithm off, which package net has done already where its user has not turned it on:
// with it, an FPDU that does not fill a segment waits for the acknowledgement of what was sent before.
func (c *Conn) SendAtOnce() {
	// CULLEY, section 7.3: "To achieve the previous segmentation rule, TCP's Nagle algorithm SHOULD be disabled." [S04]
	if on, ok := basis(c.Conn).(interface{ SetNoDelay(yes bool) error }); ok {
		_ = on.SetNoDelay(true) // it fails on a closed one only, which the next call finds
	}
}

// basis returns the connection that a recording or encrypting one is built on. A method NetConn, as tls.Conn has,
// tells which that is.
func basis(c net.Conn) net.Conn {
	for {
		on, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = on.NetConn()
	}
}

// Recv waits for bytes and reads as many as there are; Unread has them, until
// Done. An error of io.EOF is the peer's FIN.
func (c *Conn) Recv() error {
	if c.isAhead.Load() && c.recvAhead() {
		return nil
	}
	if c.raw != nil {
		return c.raw.recv()
	}
	err := c.recvPlain()
	c.rx.mu.Lock()
	return err
}

// TryRecv is Recv without waiting, for another goroutine than the one in Recv. It
// reports false, and leaves the receive buffer alone, if there is nothing to read
// or someone else is reading.
func (c *Conn) TryRecv() (ok bool, err error) {
	if c.raw == nil || c.isAhead.Load() {
		return false, nil
	}
	return c.raw.tryRecv()
}

// RecvRest is TryRecv for who must not miss what another goroutine has just read: it waits
// until that is consumed. The receive buffer is the caller's until Done, whether there was
// something to read or not, so that nothing is read meanwhile.
func (c *Conn) RecvRest() (ok bool, err error) {
	c.rx.mu.Lock()
	if c.raw == nil || c.isAhead.Load() {
		return false, nil
	}
	return c.raw.recvNow()
}

// Rest gives the memory of the receive buffer back, if nobody is receiving and little is unread: a consumer that polls
// leaves it there for what comes next. It does nothing where there is no socket: the receiving goroutine then uses the
// buffer without the lock.
func (c *Conn) Rest() {
	if c.raw != nil && !c.isAhead.Load() && c.rx.mu.TryLock() {
		c.rx.idle()
		c.rx.mu.Unlock()
	}
}

// Done gives back the receive buffer, after Recv, a TryRecv that read, or RecvRest.
func (c *Conn) Done() { c.rx.mu.Unlock() }

// recvPlain waits with a few bytes of its own, and reads into a pooled buffer
// only while much of an unfinished FPDU is there.
func (c *Conn) recvPlain() error {
	for range maxEmptyReads {
		if n, err := c.readPlain(); n > 0 {
			return nil // an error that came with bytes will come again
		} else if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// maxEmptyReads bounds how often in a row a Read may bring neither bytes nor an error.
const maxEmptyReads = 100

func (c *Conn) readPlain() (n int, err error) {
	c.rx.shrink()
	if c.rx.big == nil {
		b := c.rx.landing()
		n, err = c.Conn.Read(b)
		c.rx.add(b, n)
		return n, err
	}
	n, err = c.Conn.Read(c.rx.room())
	c.rx.w += n
	return n, err
}

// Unread returns the bytes that were read and not yet consumed.
func (c *Conn) Unread() []byte { return c.rx.bytes() }

// Consume drops n bytes from the front of Unread. need is how many bytes the
// consumer wants to see at once next time.
func (c *Conn) Consume(n, need int) { c.rx.consume(n, need) }

// Release gives the buffers back; nothing more is received.
func (c *Conn) Release() { c.rx.release() }

// TrySend sends as much of v as the socket takes without waiting. wait reports
// that it took less than all.
func (c *Conn) TrySend(v [][]byte) (n int, wait bool, err error) {
	if c.raw == nil {
		return 0, true, nil
	}
	return c.raw.trySend(v)
}

// Send sends at least one byte of v, waiting for the connection to take it.
func (c *Conn) Send(v [][]byte) (n int, err error) {
	switch {
	case c.raw != nil:
		return c.raw.send(v)
	case c.segments != nil:
		return c.sendSegments(v)
	}
	c.bufs = append(c.bufs[:0], v...)
	all := c.bufs // a copy, as WriteBuffers consumes it
	m, err := WriteBuffers(c.Conn, &all)
	clear(c.bufs)
	return int(m), err
}

// EndRecords has each slice that is sent from now on end a record: TCP begins a new
// segment after it. It reports whether the system can do that.
func (c *Conn) EndRecords(on bool) bool {
	c.records = on
	return c.segments != nil || c.raw != nil && c.raw.endRecords(on)
}

// HasHalves reports whether the connection can be closed by halves.
func (c *Conn) HasHalves() bool {
	_, ok := c.Conn.(interface{ CloseWrite() error })
	return ok
}

// CloseWrite sends a FIN, where the connection can be closed by halves. If the connection is already lost, the error
// says why, as far as the system tells.
func (c *Conn) CloseWrite() error {
	if c.raw == nil {
		return CloseWrite(c.Conn)
	}
	c.raw.finishes(true)
	err := CloseWrite(c.Conn)
	if err == nil {
		return nil
	}
	c.raw.finishes(false)
	if _, lost := c.Unacked(); lost != nil {
		return lost
	}
	return err
}

// Foreign reports whether the connection is none of the standard library's sockets: then
// its methods are the consumer's code, or may wait for the peer as those of tls.Conn.
func (c *Conn) Foreign() bool {
	switch c.Conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return false
	}
	return true
}

// Reset closes at once with a RST, where there is such a thing. A connection with a method NetConn, as tls.Conn has,
// has the one below it reset first: TLS must not tell the peer of an orderly end.
func (c *Conn) Reset() error {
	if c.segments != nil {
		return c.segments.Reset()
	}
	if over, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		lower := over.NetConn()
		linger(lower)
		_ = lower.Close()
	}
	linger(c.Conn)
	return c.Close()
}

// linger makes the next Close send a RST.
func linger(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
}

// Limits returns the effective maximum segment size and how many bytes a record may have,
// and 0 where the system does not tell. TCP takes a record of up to that many bytes as
// one piece, and cuts it at the EMSS only. It is no less than the EMSS. A connection with a method NetConn, as tls.Conn
// has, has those of the one below it. Calls must not overlap.
func (c *Conn) Limits() (emss, record int) {
	switch {
	case c.below != nil:
		emss = c.below.EMSS()
		return emss, emss
	case c.base == nil:
		return 0, 0
	}
	return c.base.limits()
}
