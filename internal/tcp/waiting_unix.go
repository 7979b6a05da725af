//go:build unix

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peek reports whether a socket has bytes to be read. It takes none of them.
func peek(c syscall.Conn) (waiting bool) {
	rc, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	_ = rc.Control(func(fd uintptr) {
		n, _, failed := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waiting = failed == nil && n > 0
	})
	return waiting
}

// readable reports whether a wait for a socket would end at once, or the socket is closed.
func readable(c syscall.Conn) bool {
	rc, err := c.SyscallConn()
	if err != nil {
		return true
	}
	n := 0
	err = rc.Control(func(fd uintptr) {
		asked := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} //nolint:gosec // a descriptor is a small number
		n, _ = unix.Poll([]unix.PollFd{asked}, 0)
	})
	return err != nil || n != 0
}
