package tcp

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSegments sets the maximum segment size of a socket that is not connected yet, if the route to the
// address makes it no multiple of four. Not on the loopback interface: nothing is aligned there by default, and its MTU
// needs no correction.
func limitSegments(ctx context.Context, address string, c syscall.RawConn) {
	if !onLoopback(address) {
		setMaxSegment(c, wholeWords(routeMTU(ctx, address)))
	}
}

func onLoopback(address string) bool {
	to, err := netip.ParseAddrPort(address)
	return err == nil && to.Addr().IsLoopback()
}

// setMaxSegment sets TCP_MAXSEG to n bytes, if that is not 0. Where it cannot, segments stay as they are.
func setMaxSegment(c syscall.RawConn, n int) {
	if n > 0 {
		_ = c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, n) })
	}
}

// routeMTU asks for the MTU of the route to an address, which is 0 if there is none, and
// returns with it the bytes of a packet's headers. A UDP socket knows it before anything is
// sent.
func routeMTU(ctx context.Context, address string) (mtu, headers int) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return 0, 0
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	u, ok := conn.(*net.UDPConn)
	if !ok {
		return 0, 0
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	headers = headersIPv4
	if a, ok := u.RemoteAddr().(*net.UDPAddr); ok && a.IP.To4() == nil {
		level, option, headers = unix.IPPROTO_IPV6, unix.IPV6_MTU, headersIPv6
	}
	rc, err := u.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = rc.Control(func(fd uintptr) { mtu, _ = unix.GetsockoptInt(int(fd), level, option) })
	return mtu, headers
}
