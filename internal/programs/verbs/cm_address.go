//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// A port is a local TCP port that is kept for an ID: bound, and not listened on, so that the number is known
// before rdma_listen or rdma_connect, and nobody connects until then.
type port struct{ fd int }

// reserve binds a socket to an address whose port the kernel chooses. Only IPv6 is for an address of all of these.
func reserve(a netip.AddrPort, only6 bool) (*port, netip.AddrPort, syscall.Errno) {
	fd, err := syscall.Socket(family(a.Addr()), syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, a, errnoOf(err)
	}
	if !a.Addr().Is4() && only6 {
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = syscall.Bind(fd, sockaddr(a))
	}
	if err == nil {
		var name syscall.Sockaddr
		if name, err = syscall.Getsockname(fd); err == nil {
			return &port{fd}, netip.AddrPortFrom(a.Addr(), portOf(name)), fine
		}
	}
	_ = syscall.Close(fd)
	return nil, a, errnoOf(err)
}

func (p *port) release() {
	if p != nil && p.fd >= 0 {
		_ = syscall.Close(p.fd)
		p.fd = -1
	}
}

// share lets sockets that share be bound to the port beside this one.
func (p *port) share() {
	if p != nil {
		_ = share(p.fd)
	}
}

func share(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}

// sharing is share for a net.Dialer.
func sharing(_, _ string, c syscall.RawConn) (err error) {
	return errors.Join(c.Control(func(fd uintptr) { err = share(int(fd)) }), err)
}

// listen turns the socket into a listener, which has it from then on.
func (p *port) listen() (net.Listener, error) {
	if err := syscall.Listen(p.fd, syscall.SOMAXCONN); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(p.fd), "rdma_listen")
	p.fd = -1
	defer f.Close()
	return net.FileListener(f)
}

func family(a netip.Addr) int {
	if a.Is4() {
		return syscall.AF_INET
	}
	return syscall.AF_INET6
}

func sockaddr(a netip.AddrPort) syscall.Sockaddr {
	if a.Addr().Is4() {
		return &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &syscall.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zoneOf(a.Addr())}
}

func zoneOf(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	return 0
}

func portOf(a syscall.Sockaddr) uint16 {
	switch a := a.(type) {
	case *syscall.SockaddrInet4:
		return uint16(a.Port)
	case *syscall.SockaddrInet6:
		return uint16(a.Port)
	}
	return 0
}

// BindAddr gives an ID a local address, which must be one of the host's. A port of 0 becomes a number; another is taken
// only when the ID listens, as it may be that of a socket of the program's own until then. It is EADDRINUSE where
// another ID listens.
func (d *Device) BindAddr(h Handle, a netip.AddrPort) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage != stageNew || !a.IsValid() {
		return syscall.EINVAL
	}
	return id.bind(a)
}

// SetFamilyOnly says whether an ID that listens on all addresses of IPv6 leaves those of IPv4 to others, as one of
// tgt's does that listens on each family by itself. It is EINVAL once the ID is bound, as with the kernel's.
func (d *Device) SetFamilyOnly(h Handle, on bool) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage != stageNew {
		return syscall.EINVAL
	}
	id.familyOnly = on
	return fine
}

func (id *ID) bind(a netip.AddrPort) syscall.Errno {
	if id.device.listening.has(spot{a, id.familyOnly}) {
		return syscall.EADDRINUSE
	}
	p, bound, errno := reserve(netip.AddrPortFrom(a.Addr(), 0), id.familyOnly)
	if errno != fine {
		return errno
	}
	if a.Port() == 0 {
		id.port, a = p, bound
	} else {
		p.release()
	}
	id.local, id.stage = a, stageBound
	return fine
}

// ResolveAddr finds the local address from which the peer's can be reached, with a port that is kept for the
// connection: an AddrResolved follows, or an AddrError. src may be invalid, which leaves it to the routes.
func (d *Device) ResolveAddr(h Handle, src, dst netip.AddrPort) syscall.Errno {
	id := d.ids.get(h)
	if id == nil || !dst.IsValid() {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage == stageNew && src.IsValid() {
		if errno := id.bind(src); errno != fine {
			return errno
		}
	}
	if id.stage != stageNew && id.stage != stageBound {
		return syscall.EINVAL
	}
	local, errno := route(id.local, dst)
	if errno == fine && local.Port() == 0 {
		id.port, local, errno = reserve(local, false)
	}
	if errno != fine {
		id.emit(CMEvent{Type: AddrError, Status: -int32(errno)})
		return fine
	}
	id.local, id.peer, id.stage = local, dst, stageAddress
	id.emit(CMEvent{Type: AddrResolved})
	return fine
}

// route asks the kernel which address of ours it uses for a peer. That sends nothing.
func route(local, peer netip.AddrPort) (netip.AddrPort, syscall.Errno) {
	var d net.Dialer
	if a := local.Addr(); a.IsValid() && !a.IsUnspecified() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	to := peer
	if to.Port() == 0 {
		to = netip.AddrPortFrom(to.Addr(), 9)
	}
	conn, err := d.Dial("udp", to.String())
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EHOSTUNREACH
		}
		return local, errno
	}
	defer conn.Close()
	a := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return netip.AddrPortFrom(a, local.Port()), fine
}

// ResolveRoute is there for completeness: a RouteResolved follows.
func (d *Device) ResolveRoute(h Handle) syscall.Errno {
	id := d.ids.get(h)
	if id == nil || !id.advanceAndEmit(stageAddress, stageRoute, CMEvent{Type: RouteResolved}) {
		return syscall.EINVAL
	}
	return fine
}
