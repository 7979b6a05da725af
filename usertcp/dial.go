package usertcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// DialContext connects to an IP address and a port, on network "tcp", "tcp4" or "tcp6". The Stack's own are
// refused. The connection is a [*Conn]. The error is a *net.OpError, which wraps the context's where that has ended.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	remote, err := parse(network, address, false)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	c, err := s.connect(ctx, network, remote)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: tcpAddr(remote), Err: err}
	}
	return c, nil
}

// errItself: what is sent leaves by the Link, and does not come back.
var errItself = fmt.Errorf("a stack has no connections to itself: %w", syscall.EHOSTUNREACH)

// owns reports whether an address stands for the stack itself.
func (s *Stack) owns(a netip.Addr) bool {
	own := func(other netip.Addr) bool { return other.Unmap() == a }
	return a.IsUnspecified() || a.IsLoopback() || slices.ContainsFunc(s.cfg.Addresses, own)
}

func (s *Stack) connect(ctx context.Context, network string, remote netip.AddrPort) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.ending() {
		return nil, net.ErrClosed
	}
	if s.owns(remote.Addr().Unmap()) {
		return nil, errItself
	}
	wq := new(waiter.Queue)
	ep, err := s.net.NewEndpoint(tcp.ProtocolNumber, protocolOf(remote.Addr()), wq)
	if err != nil {
		return nil, errorOf(err)
	}
	c := s.newConn(network, ep, wq)
	if err := c.await(ctx, remote); err != nil {
		c.abort()
		return nil, err
	}
	if err := c.establish(); err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

// await starts the connection and waits until it is there.
func (c *Conn) await(ctx context.Context, remote netip.AddrPort) error {
	err := c.ep.Connect(full(remote))
	if _, ok := err.(*tcpip.ErrConnectStarted); ok {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stack.closed:
			return net.ErrClosed
		case <-c.writable:
		}
		err = c.ep.LastError()
	}
	if err != nil {
		return errorOf(err)
	}
	return nil
}

// establish finds out who is connected, and the flow between them.
func (c *Conn) establish() error {
	local, _ := c.ep.GetLocalAddress() // which TCP always has
	remote, err := c.ep.GetRemoteAddress()
	if err != nil { // it has ended again
		return errors.Join(net.ErrClosed, errorOf(&tcpip.ErrConnectionReset{}))
	}
	ends := ends{local: addrPort(local), remote: addrPort(remote)}
	c.local, c.remote = tcpAddr(ends.local), tcpAddr(ends.remote)
	if err := c.stack.addConn(c); err != nil {
		return err
	}
	c.flow = c.stack.taps.claim(ends)
	c.flow.conn.Store(c)
	c.wq.EventRegister(&c.onEnd)
	c.updateEnd() // it may have ended before
	return c.options()
}

// options sets those of a single connection.
func (c *Conn) options() error {
	so := c.ep.SocketOptions()
	so.SetDelayOption(false) // Nagle's would hold back what is not a full segment
	if c.stack.cfg.KeepAlive == 0 {
		return nil
	}
	idle := tcpip.KeepaliveIdleOption(c.stack.cfg.KeepAlive)
	every := tcpip.KeepaliveIntervalOption(max(c.stack.cfg.KeepAlive/4, time.Second))
	for _, o := range []tcpip.SettableSocketOption{&idle, &every} {
		if err := c.ep.SetSockOpt(o); err != nil {
			return errorOf(err)
		}
	}
	so.SetKeepAlive(true)
	return nil
}
