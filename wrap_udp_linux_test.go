package iwarp_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestWrappedIsEnlarged: the socket that WrapUDP gets has more room than one has by itself, which nobody can give it after that.
func TestWrappedIsEnlarged(t *testing.T) {
	room := func(s iwarp.UDPSocket) (receive, send int) {
		rc, err := s.(*net.UDPConn).SyscallConn()
		must(t, err)
		must(t, rc.Control(func(fd uintptr) {
			receive, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
			must(t, err)
			send, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
			must(t, err)
		}))
		return receive, send
	}
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer func() { must(t, other.Close()) }()
	var receive, send int
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{WrapUDP: func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) {
		receive, send = room(s)
		return s, nil
	}})
	must(t, err)
	must(t, ln.Close())
	if r, s := room(other); receive <= r || send <= s {
		t.Errorf("room for %d octets that arrive and %d that leave, and another has %d and %d", receive, send, r, s)
	}
}
