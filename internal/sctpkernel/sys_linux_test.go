package sctpkernel

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestControlGoesAlong: control messages are sent and received with a message, such as descriptors by a socket of Unix.
func TestControlGoesAlong(t *testing.T) {
	c := newStandIn(t)
	fd, err := unix.Dup(c.fd)
	testrig.Must(t, err)
	s, err := watch(fd)
	testrig.Must(t, err)
	defer s.close()
	testrig.Must(t, c.s.do(func(fd int) error { return sendmsg(fd, []byte("with"), unix.UnixRights(fd)) }))
	if err := sendmsg(-1, []byte("nowhere"), nil); !errors.Is(err, unix.EBADF) {
		t.Errorf("sent on no socket: %v", err)
	}
	m, err := s.recv()
	testrig.Must(t, err)
	defer m.release()
	all, err := unix.ParseSocketControlMessage(m.control[:m.controlLen])
	if err != nil || len(all) != 1 || string(m.data) != "with" {
		t.Fatalf("%q came with %+v (%v)", m.data, all, err)
	}
	fds, err := unix.ParseUnixRights(&all[0])
	testrig.Must(t, err)
	testrig.Must(t, unix.Close(fds[0]))
}

// TestAddresses: addresses go to the kernel and come back as they were, of both families, with zones.
func TestAddresses(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "::1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(text), 0)
		pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Skip(err)
		}
		defer func() { _ = pc.Close() }()
		to := pc.LocalAddr().(*net.UDPAddr).AddrPort()
		v6 := at.Addr().Is6()
		fd, err := unix.Socket(map[bool]int{false: unix.AF_INET, true: unix.AF_INET6}[v6],
			unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		testrig.Must(t, err)
		s, err := watch(fd)
		testrig.Must(t, err)
		defer s.close()
		testrig.Must(t, bind(fd, at, v6))
		testrig.Must(t, connect(fd, to, v6))
		ours, err := name(fd)
		if err != nil || ours.Addr() != at.Addr() || ours.Port() == 0 {
			t.Errorf("%s: we are %v (%v)", text, ours, err)
		}
		_, err = pc.WriteToUDPAddrPort([]byte("hello"), ours)
		testrig.Must(t, err)
		m, err := s.recv()
		testrig.Must(t, err)
		if m.from != to || string(m.data) != "hello" {
			t.Errorf("%s: %q from %v, want %v", text, m.data, m.from, to)
		}
		m.release()
		if from, err := lowerlayer.Route(at); err != nil || from != at.Addr() {
			t.Errorf("%s: from %v (%v)", text, from, err)
		}
	}
	remote := Addr{netip.MustParseAddrPort("127.0.0.1:9")}
	for bound, want := range map[string]string{"0.0.0.0": "127.0.0.1:7", "10.0.0.1": "10.0.0.1:7"} {
		if got := (&Conn{bound: netip.MustParseAddr(bound), port: 7,
			remote: remote}).LocalAddr(); got.String() != want {
			t.Errorf("bound to %s, we are %v", bound, got)
		}
	}
	lo, err := net.InterfaceByIndex(1)
	testrig.Must(t, err)
	for text, want := range map[string]struct {
		scope uint32
		zone  string
	}{"fe80::1%" + lo.Name: {1, lo.Name}, "fe80::1%7777": {7777, "7777"}, "fe80::1": {}, "::ffff:10.0.0.1": {}} {
		a := netip.MustParseAddr(text)
		if n := scope(a); n != want.scope {
			t.Errorf("%s: scope %d", text, n)
		}
		if got := zoned(a.WithZone(""), want.scope); got.Zone() != want.zone ||
			got.WithZone("") != a.Unmap().WithZone("") {
			t.Errorf("%s: %v", text, got)
		}
	}
	if got := zoned(netip.MustParseAddr("10.0.0.1"), 1); got.String() != "10.0.0.1" {
		t.Errorf("got %v", got)
	}
}

// TestSocketOptions: what is set of any socket is what it has then.
func TestSocketOptions(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Close(fd) }()
	get := func(level, opt int) int {
		b := make([]byte, 4)
		testrig.Must(t, getsockopt(fd, level, opt, b))
		return int(native.Uint32(b))
	}
	for _, on := range []bool{true, false} {
		want := map[bool]int{true: 1}[on]
		testrig.Must(t, onlyV6(fd, on))
		testrig.Must(t, abortOnClose(fd, on))
		if n := get(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); n != want {
			t.Errorf("only IPv6 is %d, want %d", n, want)
		}
		if n := get(unix.SOL_SOCKET, unix.SO_LINGER); n != want {
			t.Errorf("lingering is %d, want %d", n, want)
		}
	}
	testrig.Must(t, prepare(fd, true, true))
	if get(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY) != 1 || get(unix.SOL_SOCKET, unix.SO_REUSEADDR) != 1 {
		t.Error("it is not prepared")
	}
	const window = 8 << 20 // more than is usual without a privilege
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	testrig.Must(t, err)
	defer func() { _ = unix.Close(other) }()
	least := min(2*window, get(unix.SOL_SOCKET, unix.SO_RCVBUF)+1)
	if unix.SetsockoptInt(other, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, window) == nil {
		least = 2 * window // Linux doubles it
	}
	setBuffers(fd, window)
	if n := get(unix.SOL_SOCKET, unix.SO_RCVBUF); n < least {
		t.Errorf("a buffer of %d, want %d", n, least)
	}
	if err := lastError(fd); err != nil {
		t.Error(err)
	}
	testrig.Must(t, connect(fd, netip.MustParseAddrPort("[::1]:1"), true))
	var poll = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_, err = unix.Poll(poll, -1)
	testrig.Must(t, err)
	if err := lastError(fd); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the last error is %v", err)
	}
	if n, err := unacknowledged(-1); err == nil {
		t.Errorf("a socket that is not open has %d bytes", n)
	}
	if err := getsockopt(fd, protocol, optStatus, make([]byte, 4)); err == nil {
		t.Error("TCP has SCTP's options")
	}
}
