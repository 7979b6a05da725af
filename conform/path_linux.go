package conform

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measured returns the round trip that the system's TCP has measured; zero if conn is no socket of TCP.
func measured(conn net.Conn) (trip time.Duration) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			trip = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return trip
}
