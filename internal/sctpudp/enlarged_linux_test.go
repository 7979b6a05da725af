package sctpudp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestEnlarged: a socket of UDP is given more room than it has by itself.
func TestEnlarged(t *testing.T) {
	room := func(pc *net.UDPConn, opt int) (n int) {
		rc, err := pc.SyscallConn()
		testrig.Must(t, err)
		testrig.Must(t, rc.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt) }))
		testrig.Must(t, err)
		return n
	}
	pc := socket(t)
	receive, send := room(pc, unix.SO_RCVBUF), room(pc, unix.SO_SNDBUF)
	e := New(pc, false, Config{})
	defer func() { testrig.Must(t, e.Close()) }()
	if r, s := room(pc, unix.SO_RCVBUF), room(pc, unix.SO_SNDBUF); r <= receive || s <= send {
		t.Errorf("room for %d bytes that arrive and %d that leave, and it was %d and %d", r, s, receive, send)
	}
}
