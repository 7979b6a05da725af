package perf

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func setCC(c syscall.RawConn, name string) (err error) {
	if failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}); failed != nil {
		return failed
	}
	return os.NewSyscallError("setsockopt", err)
}

// ccOf returns "" if the system does not tell.
func ccOf(c syscall.RawConn) (name string) {
	_ = c.Control(func(fd uintptr) {
		name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return strings.TrimRight(name, "\x00")
}

// availableCC says what there is, for an error's text.
func availableCC() string {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return ""
	}
	return "; this system has " + strings.Join(strings.Fields(string(text)), ", ")
}
