package usertcp

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// An end is how far a connection has come in ending.
type end struct {
	tell, leave sync.Once
	told        chan struct{} // the peer has acknowledged our FIN, or will not
	over        chan struct{} // besides, nobody has any use for the connection
}

func (e *end) init() { e.told, e.over = make(chan struct{}), make(chan struct{}) }

// Told returns a channel that is closed when the peer has acknowledged everything that was written, and the FIN of CloseWrite or
// Close; or when the connection is lost, so that it never will.
func (c *Conn) Told() <-chan struct{} { return c.end.told }

// Acknowledged returns a number that grows by one, modulo 2^32, with each octet that the peer acknowledges.
func (c *Conn) Acknowledged() uint32 { return c.flow.una.Load() }

// look finds out how far the end has come, whenever that may have changed. It may be called with TCP's locks held.
func (c *Conn) look() {
	state := tcp.EndpointState(c.ep.State())
	switch state {
	case tcp.StateFinWait2, tcp.StateTimeWait, tcp.StateClose, tcp.StateError:
	default:
		return
	}
	if c.flow != nil && (state == tcp.StateClose || state == tcp.StateError) {
		c.stack.taps.forget(c.flow)
	}
	c.end.tell.Do(func() { close(c.end.told) })
	if state == tcp.StateError || c.isClosed() {
		c.end.leave.Do(func() {
			close(c.end.over)
			c.stack.exit(c)
		})
	}
}

// over reports whether the connection of a flow is.
func (f *flow) over() bool {
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
