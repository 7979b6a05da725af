//go:build unix

package iwarp_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptors asks for as many open descriptors as the system allows and returns
// how many those are.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	l.Cur = l.Max
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	}
	return int(min(uint64(l.Cur), 1<<30)) //nolint:unconvert // it is signed on some systems
}

// maxSegment asks TCP for its effective maximum segment size.
func maxSegment(t testing.TB, c net.Conn) (n int) {
	t.Helper()
	rc, err := c.(*net.TCPConn).SyscallConn()
	must(t, err)
	_ = rc.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	must(t, err)
	return n
}
