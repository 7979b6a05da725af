package testrig

import (
	"context"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/internal/mempipe"
)

// TCPPair returns the two ends of a TCP connection on the loopback interface: the one
// that connected, and the one that was accepted.
func TCPPair(ctx context.Context) (a, b net.Conn, err error) {
	ln, err := ListenTCP(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if a, err = new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	if b, err = ln.Accept(); err != nil {
		_ = a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// ListenTCP listens on a free port of the loopback interface.
func ListenTCP(ctx context.Context) (*net.TCPListener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// A Listener hands out connections in memory.
type Listener struct {
	name  mempipe.Address
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewListener returns a Listener whose address is the name given.
func NewListener(name string) *Listener {
	return &Listener{name: mempipe.Address(name), conns: make(chan net.Conn), done: make(chan struct{})}
}

// Offer hands a connection to an Accept, and waits for one. The error is the
// context's, or net.ErrClosed after Close.
func (l *Listener) Offer(ctx context.Context, c net.Conn) error {
	select {
	case l.conns <- c:
		return nil
	case <-l.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Accept waits for a connection that is offered. The error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Offer.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns the Listener's name.
func (l *Listener) Addr() net.Addr { return l.name }
