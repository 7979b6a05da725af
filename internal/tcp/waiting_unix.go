//go:build unix

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peek reports whether a socket has octets to be read. It takes none of them.
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

// readable reports whether somebody who waited for a socket would be woken, or it is closed.
func readable(c syscall.Conn) bool {
	rc, err := c.SyscallConn()
	if err != nil {
		return true
	}
	n := 0
	err = rc.Control(func(fd uintptr) {
		n, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor is a small number
	})
	return err != nil || n != 0
}
