package sctpkernel

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
)

// A Listener is a socket to which peers open associations.
type Listener struct {
	s    *socket
	cfg  Config
	addr Addr
	open atomic.Int64 // associations
}

// Listen listens on an address: network is "sctp", "sctp4" or "sctp6". On all addresses, peers are told all of them,
// and may use them for one association; RFC 5043, section 7.2, would rather have one.
func Listen(network, addr string, cfg Config) (*Listener, error) {
	cfg.fill()
	family := strings.TrimPrefix(network, "sctp")
	at, err := net.ResolveUDPAddr("udp"+family, addr)
	if err != nil {
		return nil, err
	}
	l := &Listener{cfg: cfg}
	if err := l.listen(at.AddrPort(), family); err != nil {
		return nil, err
	}
	return l, nil
}

// listen makes the socket. One for all addresses is of IPv6, if there is that, and takes IPv4 too.
func (l *Listener) listen(at netip.AddrPort, family string) (err error) {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	if at.Addr().IsValid() {
		return l.listenOn(at, at.Addr().Is6(), family)
	}
	if family != "4" {
		err = l.listenOn(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()), true, family)
	}
	if family == "4" || err != nil && family == "" {
		err = l.listenOn(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()), false, family)
	}
	return err
}

func (l *Listener) listenOn(at netip.AddrPort, v6 bool, family string) (err error) {
	l.s, err = open(at, v6, &l.cfg, func(fd int) error { return prepare(fd, v6, family == "6") })
	if err != nil {
		return err
	}
	err = l.s.do(func(fd int) error {
		if err := listen(fd); err != nil {
			return err
		}
		at, err := name(fd)
		l.addr = Addr{at}
		return err
	})
	if err != nil {
		l.s.close()
	}
	return err
}

// prepare sets what is a listening socket's: its port may be that of associations whose Listener has gone.
func prepare(fd int, v6, only bool) error {
	if v6 {
		if err := onlyV6(fd, only); err != nil {
			return err
		}
	}
	return reuse(fd)
}

// Addr returns the address listened on.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close takes no more associations. Those that were accepted go on.
func (l *Listener) Close() error {
	if err := l.s.f.Close(); err != nil {
		return net.ErrClosed
	}
	return nil
}

// Accept returns the next association that a peer has opened. One goroutine calls it. A peer without the indication of
// DDP is turned away, and so is one for which there is no room.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	stop := context.AfterFunc(ctx, l.s.interrupt)
	defer stop()
	for {
		m, err := l.s.recv()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		}
		n := m.notification()
		from := m.from
		m.release()
		if n.is(commUp) {
			if c := l.welcome(n, from); c != nil {
				return c, nil
			}
		}
	}
}

// welcome takes an association, if it may be one of ours.
func (l *Listener) welcome(up notification, from netip.AddrPort) *Conn {
	if l.open.Add(1) > int64(l.cfg.MaxAssociations) {
		l.turnAway(up.assoc, "too many associations")
		return nil
	}
	c, err := peelOff(l.s, up, from)
	if err != nil {
		l.turnAway(up.assoc, err.Error())
		return nil
	}
	c.onEnd = func() { l.open.Add(-1) }
	return c
}

// turnAway aborts an association that has no descriptor of its own.
func (l *Listener) turnAway(assoc int32, text string) {
	l.open.Add(-1)
	l.s.abort(assoc, text)
}
