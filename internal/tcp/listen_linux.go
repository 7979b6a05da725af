package tcp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listen is lc.Listen, with fewer system calls for each connection: package net sets the four options of keep-alive on
// each one that it accepts, and Linux has a connection inherit them from the socket that listens.
func Listen(ctx context.Context, lc net.ListenConfig, network, addr string) (net.Listener, error) {
	k, on := keepAliveOf(&lc)
	if !on {
		return lc.Listen(ctx, network, addr)
	}
	ln, err := inheriting(lc, k).Listen(ctx, network, addr)
	if errors.Is(err, errNotInherited) { // as with multipath TCP of older kernels
		return lc.Listen(ctx, network, addr)
	}
	return ln, err
}

// keepAliveOf returns what package net would set on each connection, and whether it would.
func keepAliveOf(lc *net.ListenConfig) (k net.KeepAliveConfig, on bool) {
	if lc.KeepAliveConfig.Enable {
		return lc.KeepAliveConfig, true
	}
	return net.KeepAliveConfig{Enable: true, Idle: lc.KeepAlive}, lc.KeepAlive >= 0
}

var errNotInherited = errors.New("the socket that listens has no keep-alive to pass on")

// inheriting returns lc with keep-alive on the socket that listens, and on no other. A Control function of lc is called
// before that: what it sets of keep-alive does not last with package net either.
func inheriting(lc net.ListenConfig, k net.KeepAliveConfig) *net.ListenConfig {
	given := lc.Control
	lc.KeepAlive, lc.KeepAliveConfig = -1, net.KeepAliveConfig{}
	lc.Control = func(network, address string, c syscall.RawConn) error {
		if given != nil {
			if err := given(network, address, c); err != nil {
				return err
			}
		}
		set := false
		if err := c.Control(func(fd uintptr) { set = setKeepAlive(int(fd), k) }); err != nil {
			return err
		}
		if !set {
			return errNotInherited
		}
		return nil
	}
	return &lc
}

// What package net sets for a zero.
const (
	keepAliveTime  = 15 * time.Second
	keepAliveCount = 9
)

// setKeepAlive sets what SetKeepAliveConfig of package net does: of the others than SO_KEEPALIVE, zero is a default, and
// what is negative stays as the system has it.
func setKeepAlive(fd int, k net.KeepAliveConfig) bool {
	seconds := func(d time.Duration) int {
		d = cmp.Or(d, keepAliveTime)
		return int((d + time.Second - 1) / time.Second)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1) != nil {
		return false
	}
	for option, n := range map[int]int{
		unix.TCP_KEEPIDLE: seconds(k.Idle), unix.TCP_KEEPINTVL: seconds(k.Interval),
		unix.TCP_KEEPCNT: cmp.Or(k.Count, keepAliveCount),
	} {
		if n >= 0 && unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, n) != nil {
			return false
		}
	}
	return true
}
