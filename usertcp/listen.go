package usertcp

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// backlog is how many connections may wait for Accept.
const backlog = 4096

// Listen listens at a port of one of the stack's addresses, or, without an address, at all of them: those of IPv4 with
// network "tcp4", those of IPv6, and of IPv4 too, with "tcp6". With "tcp" it is IPv4 if the first address of the stack
// is one. Port 0 is any that is free. What a Listener accepts is a [*Conn].
func (s *Stack) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := s.listen(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	return l, nil
}

func (s *Stack) listen(ctx context.Context, network, address string) (*listener, error) {
	at, err := parse(network, address, true)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.ending() {
		return nil, net.ErrClosed
	}
	l := &listener{stack: s, network: network, closed: make(chan struct{})}
	ep, terr := s.net.NewEndpoint(tcp.ProtocolNumber, s.protocolFor(network, at), &l.wq)
	if terr != nil {
		return nil, errorOf(terr)
	}
	l.ep = ep
	l.entry, l.ready = waiter.NewChannelEntry(waiter.ReadableEvents)
	l.wq.EventRegister(&l.entry)
	if err := l.bind(full(at)); err != nil {
		ep.Close()
		return nil, errorOf(err)
	}
	if !s.listens(l) {
		_ = l.Close()
		return nil, net.ErrClosed
	}
	return l, nil
}

// protocolFor returns the version of IP that a Listener at an address has, which may be none in particular.
func (s *Stack) protocolFor(network string, at netip.AddrPort) tcpip.NetworkProtocolNumber {
	switch {
	case at.Addr().IsValid():
		return protocolOf(at.Addr())
	case network == "tcp4" || network == "tcp" && protocolOf(s.cfg.Addresses[0]) == ipv4.ProtocolNumber:
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// A listener is a net.Listener.
type listener struct {
	stack   *Stack
	network string
	ep      tcpip.Endpoint
	wq      waiter.Queue
	entry   waiter.Entry
	ready   <-chan struct{}
	addr    *net.TCPAddr

	accepting sync.Mutex
	closing   sync.Once
	closed    chan struct{}
}

func (l *listener) bind(at tcpip.FullAddress) tcpip.Error {
	l.ep.SocketOptions().SetReuseAddress(true) // connections of before may still wait for late segments
	if err := l.ep.Bind(at); err != nil {
		return err
	}
	if err := l.ep.Listen(backlog); err != nil {
		return err
	}
	local, err := l.ep.GetLocalAddress()
	l.addr = tcpAddr(addrPort(local))
	return err
}

// Accept is net.Listener's.
func (l *listener) Accept() (net.Conn, error) {
	l.accepting.Lock()
	defer l.accepting.Unlock()
	for {
		c, err := l.accept()
		if err != nil {
			return nil, &net.OpError{Op: "accept", Net: l.network, Addr: l.addr, Err: err}
		}
		if c != nil {
			return c, nil
		}
		select {
		case <-l.ready:
		case <-l.closed:
		case <-l.stack.closed:
		}
	}
}

// accept returns the next connection, or nil if there is none yet. One that has ended meanwhile is passed over.
func (l *listener) accept() (*Conn, error) {
	for {
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-l.stack.closed:
			return nil, net.ErrClosed
		default:
		}
		ep, wq, err := l.ep.Accept(nil)
		if _, ok := err.(*tcpip.ErrWouldBlock); ok {
			return nil, nil
		}
		if err != nil {
			return nil, errorOf(err)
		}
		c := l.stack.newConn(l.network, ep, wq)
		if c.establish() == nil {
			return c, nil
		}
		c.abort()
	}
}

// Close ends the Listener, with the connections that nobody has accepted.
func (l *listener) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		l.wq.EventUnregister(&l.entry)
		l.ep.Close()
		l.stack.listensNoMore(l)
	})
	return nil
}

// Addr is net.Listener's.
func (l *listener) Addr() net.Addr { return l.addr }
