package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

func setUserTimeout(t *net.TCPConn, d time.Duration) error {
	rc, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = rc.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(max(d.Milliseconds(), 1)))
	})
	if err == nil {
		err = failed
	}
	return err
}
