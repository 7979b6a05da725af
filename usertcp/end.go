package usertcp

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// An end is how far a connection has come in ending.
type end struct {
	tell, leave sync.Once
	told        chan struct{}     // the peer has acknowledged our FIN, or will not
	last        tcp.EndpointState // in which that was found; valid when told is closed
	over        chan struct{}     // besides, nobody has any use for the connection
	assured     chan struct{}     // besides, the peer was told that all of its half has come
	patience    patience          // after Close
	parting     parting           // after CloseWrite or Close
}

func (e *end) init() {
	e.told, e.over, e.assured = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// PeerAcked returns a channel that is closed when the peer has acknowledged everything that was written, and the FIN of
// CloseWrite or Close; or when the connection is lost, so that it never will. After Close, if the peer's FIN has come,
// it is closed only when the peer has been told so several times: if the first acknowledgement was lost and the program
// ended after it, the peer's TCP would wait in vain.
func (c *Conn) PeerAcked() <-chan struct{} {
	if c.isClosed() {
		return c.end.assured
	}
	return c.end.told
}

// LossError says, when the channel of PeerAcked is closed, why the peer has not acknowledged everything: it wraps
// syscall.ECONNRESET after its RST, syscall.ETIMEDOUT where it was silent for [Config].CloseTimeout, net.ErrClosed at
// the end of the Stack. It is nil before that channel is closed, if the peer has acknowledged everything, and if a
// silent peer lacks nothing but our FIN: it may have ended before the FIN came.
func (c *Conn) LossError() error {
	select {
	case <-c.end.told:
	default:
		return nil
	}
	why := c.whyLost()
	if n, known := c.unacknowledged(); errors.Is(why, syscall.ETIMEDOUT) && known && n == 0 {
		return nil
	}
	return c.opError("close", why)
}

// whyLost returns nil if the peer has acknowledged everything. A RST after the peer's FIN has gVisor close the
// connection, as the last acknowledgement does, and only its error tells the one from the other.
func (c *Conn) whyLost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.ep.LastError()
	_, aborted := err.(*tcpip.ErrAborted)
	switch {
	case c.end.last == tcp.StateClose && aborted && c.failed == nil:
		c.failed = syscall.ECONNRESET
	case c.end.last == tcp.StateClose:
	case c.end.last != tcp.StateError:
		return nil
	case c.failed != nil:
	case c.stack.ended():
		c.failed = net.ErrClosed
	case err != nil:
		c.failed = errorOf(err)
	default: // another call was told why
		c.failed = syscall.ECONNRESET
	}
	return c.failed
}

// AckProgress returns a number that grows by one, modulo 2^32, with each byte that the peer acknowledges.
func (c *Conn) AckProgress() uint32 { return c.flow.una.Load() }

// RoundTrip returns how long the way to the peer and back takes, as far as TCP has seen: its smoothed time plus four
// times the variation, as in a retransmission timeout (RFC 6298, section 2). It is zero while that is not known.
// gVisor's TCP measures the handshake, and little after it where requests and answers take turns. It does not wait.
func (c *Conn) RoundTrip() time.Duration { return time.Duration(c.flow.trip.Load()) }

// HasUnacked reports whether the peer has not acknowledged some of the bytes that were written.
func (c *Conn) HasUnacked() bool {
	select {
	case <-c.end.told: // the last acknowledgement may be missing in the count
		return c.LossError() != nil
	default:
	}
	n, _ := c.unacknowledged()
	return n > 0
}

// unacknowledged counts the bytes that were written, and not acknowledged as far as is known: of a connection that the
// Stack has lost sight of nothing is.
func (c *Conn) unacknowledged() (n int, known bool) {
	f := c.flow
	if f == nil || f.blank {
		return 0, false
	}
	acknowledged := c.AckProgress() - (f.iss + 1) // and perhaps our FIN
	return int(max(int32(c.written.Load()-acknowledged), 0)), true
}

// Unsent reports whether TCP has bytes that were written and that it has not sent yet, as the peer's window, or what
// it knows of the path, does not let it.
func (c *Conn) Unsent() bool {
	f := c.flow
	if f == nil || f.blank {
		return false
	}
	return int32(c.written.Load()-f.sent()) > 0
}

// updateEnd finds out how far the end has come, whenever that may have changed. It may be called with TCP's locks held.
func (c *Conn) updateEnd() {
	state := tcp.EndpointState(c.ep.State())
	switch state {
	case tcp.StateFinWait2, tcp.StateTimeWait, tcp.StateClose, tcp.StateError:
	default:
		return
	}
	if c.flow != nil && (state == tcp.StateClose || state == tcp.StateError) {
		c.stack.taps.forget(c.flow)
	}
	c.end.tell.Do(func() {
		c.end.last = state
		close(c.end.told)
		c.end.patience.stop()
		c.end.parting.stop()
	})
	if state == tcp.StateError || c.isClosed() {
		c.end.leave.Do(func() {
			close(c.end.over)
			go c.assure(state)
		})
	}
}

// removeFromStack takes the connection out of those that the Stack waits for.
func (c *Conn) removeFromStack() {
	close(c.end.assured)
	c.stack.removeConn(c)
}

// isOver reports whether the connection of a flow is.
func (f *flow) isOver() bool {
	c := f.conn.Load()
	if c == nil {
		return false
	}
	select {
	case <-c.end.over:
		return true
	default:
		return false
	}
}
