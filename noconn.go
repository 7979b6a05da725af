package iwarp

import (
	"fmt"
	"net"
	"time"
)

// A noConn stands for the connection that an error or a call hands over where there is none: over SCTP nothing is
// left of a session that was refused. It is closed; if it was refused here, Read returns when the peer knows.
type noConn struct {
	to   string
	told <-chan struct{}
}

// overSCTP reports whether a connection is none.
func overSCTP(c net.Conn) bool {
	_, none := c.(noConn)
	return none
}

// Read has nothing to read.
func (c noConn) Read([]byte) (int, error) {
	if c.told != nil {
		<-c.told
	}
	return 0, net.ErrClosed
}

func (noConn) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (noConn) Close() error                     { return net.ErrClosed }
func (noConn) SetDeadline(time.Time) error      { return net.ErrClosed }
func (noConn) SetReadDeadline(time.Time) error  { return net.ErrClosed }
func (noConn) SetWriteDeadline(time.Time) error { return net.ErrClosed }
func (c noConn) LocalAddr() net.Addr            { return noAddr("") }
func (c noConn) RemoteAddr() net.Addr           { return noAddr(c.to) }

// A noAddr is an address of SCTP in UDP, as text.
type noAddr string

func (noAddr) Network() string  { return "sctp" }
func (a noAddr) String() string { return string(a) }

// A socket is what a Listener listens on.
type socket interface {
	Addr() net.Addr
	Close() error
}

// noSocket stands for what a Listener was not given.
type noSocket struct{}

// Addr has none to tell.
func (noSocket) Addr() net.Addr { return nil }

// Close has nothing to close.
func (noSocket) Close() error { return nil }

// noListener is a Listener whose Accept says that it has nothing to listen on.
func noListener(cfg ListenConfig) *Listener {
	l := newListener(noSocket{}, cfg)
	l.begin(fmt.Errorf("%w: the net.Listener is nil", ErrInvalid), nil)
	return l
}
