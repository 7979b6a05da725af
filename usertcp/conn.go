package usertcp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A Conn is a connection of a [Stack]. It is safe for concurrent use.
//
// Its errors are *net.OpError. They wrap net.ErrClosed after Close or Reset of this end, os.ErrDeadlineExceeded,
// syscall.ECONNRESET where the peer has reset the connection, or other errors of package syscall. io.EOF means the
// peer's FIN and nothing else.
type Conn struct {
	stack         *Stack
	network       string
	ep            tcpip.Endpoint
	wq            *waiter.Queue
	flow          *flow
	local, remote *net.TCPAddr

	reading, writing deadline
	onRead, onWrite  waiter.Entry
	readable         <-chan struct{}
	writable         <-chan struct{}
	reads, writes    sync.Mutex // one goroutine each is in Read and in Write

	written atomic.Uint32 // bytes that TCP has taken, modulo 2^32

	closing sync.Once
	closed  chan struct{}
	onEnd   waiter.Entry
	end     end

	mu     sync.Mutex
	failed error // why the connection was lost: gVisor tells it once
}

var _ lowerlayer.SegmentedConn = (*Conn)(nil)

func (s *Stack) newConn(network string, ep tcpip.Endpoint, wq *waiter.Queue) *Conn {
	c := &Conn{stack: s, network: network, ep: ep, wq: wq, closed: make(chan struct{})}
	c.end.init()
	c.reading.init()
	c.writing.init()
	c.onRead, c.readable = waiter.NewChannelEntry(waiter.ReadableEvents)
	c.onWrite, c.writable = waiter.NewChannelEntry(waiter.WritableEvents)
	c.onEnd = waiter.NewFunctionEntry(waiter.EventHUp, func(waiter.EventMask) { c.updateEnd() })
	wq.EventRegister(&c.onRead)
	wq.EventRegister(&c.onWrite)
	return c
}

// LocalAddr returns the address of this end: a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer: a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the deadlines of Read and Write.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reading.set(t)
	c.writing.set(t)
	return nil
}

// SetReadDeadline sets the deadline of Read, also of one under way.
func (c *Conn) SetReadDeadline(t time.Time) error { c.reading.set(t); return nil }

// SetWriteDeadline sets the deadline of Write and WriteFPDUs, also of one under way.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.writing.set(t); return nil }

// Read reads what has arrived in order.
func (c *Conn) Read(p []byte) (int, error) {
	c.reads.Lock()
	defer c.reads.Unlock()
	n, err := c.read(p)
	return n, c.opError("read", err)
}

func (c *Conn) read(p []byte) (int, error) {
	for {
		if err := c.mayGoOn(&c.reading); err != nil || len(p) == 0 {
			return 0, err
		}
		w := tcpip.SliceWriter(p)
		got, err := c.ep.Read(&w, tcpip.ReadOptions{})
		switch err.(type) {
		case nil:
			c.flow.read.Add(uint64(got.Count))
			c.ep.ModerateRecvBuf(got.Count)
			return got.Count, nil
		case *tcpip.ErrWouldBlock:
			c.wait(c.readable, &c.reading)
		default:
			return 0, c.ended(err)
		}
	}
}

// mayGoOn returns the error of what is closed, or comes too late.
func (c *Conn) mayGoOn(d *deadline) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-d.passed():
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// wait waits for an event, or for what ends the waiting.
func (c *Conn) wait(event <-chan struct{}, d *deadline) {
	select {
	case <-event:
	case <-d.passed():
	case <-c.closed:
	}
}

// ended returns what an error says of the end of the connection.
func (c *Conn) ended(err tcpip.Error) error {
	if c.isClosed() || c.stack.ended() {
		return net.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, receive := err.(*tcpip.ErrClosedForReceive)
	_, send := err.(*tcpip.ErrClosedForSend)
	lost := tcp.EndpointState(c.ep.State()) == tcp.StateError
	switch {
	case c.failed != nil:
		return c.failed
	case receive && !lost:
		return io.EOF
	case send && !lost:
		return syscall.EPIPE
	case receive || send: // another call was told why
		c.failed = syscall.ECONNRESET
	default:
		c.failed = errorOf(err)
	}
	return c.failed
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// CloseWrite sends a FIN after all that was written. Receiving goes on.
func (c *Conn) CloseWrite() error {
	if c.isClosed() {
		return c.opError("close", net.ErrClosed)
	}
	if err := c.ep.Shutdown(tcpip.ShutdownWrite); err != nil {
		return c.opError("close", c.ended(err))
	}
	c.end.parting.wait(c)
	return nil
}

// Close closes the connection. What was written is still sent, as long as the Stack is there, for
// [Config].CloseTimeout: [Conn.PeerAcked] and [Stack.Shutdown] wait for that. If there is something that was not read,
// the peer gets a RST.
func (c *Conn) Close() error {
	c.close(func() {
		c.end.patience.wait(c)
		c.end.parting.wait(c)
		c.ep.Close()
	})
	return nil
}

// Reset ends the connection at once: the peer gets a RST, and what it has not acknowledged may be lost.
func (c *Conn) Reset() error {
	c.abort()
	return nil
}

func (c *Conn) abort() {
	c.close(func() {
		c.ep.Abort()
		c.ep.Close()
	})
}

func (c *Conn) close(end func()) {
	c.closing.Do(func() {
		close(c.closed)
		end()
		c.wq.EventUnregister(&c.onRead)
		c.wq.EventUnregister(&c.onWrite)
		c.reading.set(time.Time{})
		c.writing.set(time.Time{})
		if c.flow != nil {
			c.flow.dead.Store(true)
		}
		c.updateEnd()
	})
}

// opError wraps an error as package net does. io.EOF stays as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

// ShowAhead has shown called with bytes that have arrived ahead of others, as soon as their segment has come and
// passed all of TCP's checks. at is their place, counted from the byte that Read would have returned next when
// ShowAhead was called, which is 0. All of them come by Read again, at times even while they are shown. With nil
// nothing is shown any more.
//
// shown keeps nothing of the bytes. It is never called twice at once, and not after the next ShowAhead has returned,
// which waits for a call under way: ShowAhead is not to be called by shown, nor with a lock that shown takes. No other
// method has that limit.
//
// Where segments overlap and do not agree, Read may return what was not shown first. What must not depend on
// that has to be checked, as MPA does with its CRC.
func (c *Conn) ShowAhead(shown func(at uint64, data []byte)) { c.flow.showTo(shown) }

// EMSS returns the bytes of payload of a full segment, as of now: the MTU of the path, or the peer's MSS, less the
// headers and 40 bytes of options, which leaves room for selective acknowledgements. It does not wait.
func (c *Conn) EMSS() int { return int(c.flow.emss.Load()) }
