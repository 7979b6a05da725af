package sctp

import (
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestWrappedIsEnlarged: the socket that WrapUDP gets has more room than one has by itself, which nobody can give it
// after that.
func TestWrappedIsEnlarged(t *testing.T) {
	room := func(s iwarpsctp.UDPSocket) (receive, send int) {
		rc, err := s.(*net.UDPConn).SyscallConn()
		rig.Must(t, err)
		rig.Must(t, rc.Control(func(fd uintptr) {
			receive, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
			rig.Must(t, err)
			send, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
			rig.Must(t, err)
		}))
		return receive, send
	}
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	rig.Must(t, err)
	defer func() { rig.Must(t, other.Close()) }()
	var receive, send int
	ln, err := (&iwarp.ListenConfig{Network: &iwarpsctp.Network{WrapUDP: func(
		s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) {
		receive, send = room(s)
		return s, nil
	}}}).Listen(rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	rig.Must(t, ln.Close())
	if r, s := room(other); receive <= r || send <= s {
		t.Errorf("room for %d bytes that arrive and %d that leave, and another has %d and %d", receive, send, r, s)
	}
}
