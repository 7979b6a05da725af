package perf

import (
	"errors"
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

// availableCC says what there is, for the text of an error of setCC: where a right was missing, what there is without
// it.
func availableCC(err error) string {
	if !errors.Is(err, unix.EPERM) {
		return listedCC("; this system has ", "tcp_available_congestion_control")
	}
	return "; it takes root or CAP_NET_ADMIN" + listedCC(
		", or to be in net.ipv4.tcp_allowed_congestion_control, which has ", "tcp_allowed_congestion_control")
}

// listedCC returns what a file of the system's lists, after such words.
func listedCC(words, file string) string {
	text, err := os.ReadFile("/proc/sys/net/ipv4/" + file)
	if err != nil {
		return ""
	}
	return words + strings.Join(strings.Fields(string(text)), ", ")
}
