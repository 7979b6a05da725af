package tcp

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestListenKeepsAlive: a connection that Listen accepts has the options that package net's has.
func TestListenKeepsAlive(t *testing.T) {
	for _, lc := range []net.ListenConfig{
		{},
		{KeepAlive: -1},
		{KeepAlive: 1500 * time.Millisecond},
		{KeepAlive: time.Hour * 24 * 365}, // too long for Linux
		{KeepAlive: -1, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 7 * time.Second, Interval: -1, Count: 3}},
		{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: 2 * time.Second, Count: -1}},
	} {
		for _, multipath := range []bool{false, true} {
			lc.SetMultipathTCP(multipath)
			want := acceptedOptions(t, lc.Listen)
			got := acceptedOptions(t, func(ctx context.Context, network, addr string) (net.Listener, error) {
				return Listen(ctx, lc, network, addr)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%+v, multipath %v: options %d, want %d", lc, multipath, got, want)
			}
		}
	}
}

// acceptedOptions are the options of a connection that was accepted.
func acceptedOptions(
	t *testing.T, listen func(ctx context.Context, network, addr string) (net.Listener, error),
) (options []int) {
	t.Helper()
	ln, err := listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer peer.Close()
	c, err := ln.Accept()
	testrig.Must(t, err)
	defer c.Close()
	return optionsOf(t, c)
}

func optionsOf(t *testing.T, c net.Conn) (options []int) {
	t.Helper()
	rc, err := c.(*net.TCPConn).SyscallConn()
	testrig.Must(t, err)
	testrig.Must(t, rc.Control(func(fd uintptr) {
		for _, o := range [][2]int{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
			{unix.IPPROTO_TCP, unix.TCP_NODELAY},
		} {
			n, err := unix.GetsockoptInt(int(fd), o[0], o[1])
			testrig.Must(t, err)
			options = append(options, n)
		}
	}))
	return options
}

// TestListenSetsOnce: nothing is set on a connection that is accepted, but that the Nagle algorithm is off.
func TestListenSetsOnce(t *testing.T) {
	var lc net.ListenConfig
	k, on := keepAliveOf(&lc)
	if quiet := inheriting(lc, k); !on || quiet.KeepAlive >= 0 || quiet.KeepAliveConfig.Enable {
		t.Errorf("package net sets keep-alive again: %+v", quiet)
	}
}

// TestListenKeepsControl: the consumer's own Control function is called, and what it refuses is refused.
func TestListenKeepsControl(t *testing.T) {
	refused := errors.New("refused")
	called := 0
	lc := net.ListenConfig{Control: func(string, string, syscall.RawConn) error { called++; return refused }}
	if _, err := Listen(t.Context(), lc, "tcp", "127.0.0.1:0"); !errors.Is(err, refused) || called == 0 {
		t.Errorf("called %d times, err = %v", called, err)
	}
}
