package tcp

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// option asks a socket for an option of TCP.
func option(t *testing.T, c *net.TCPConn, name int) (v int) {
	t.Helper()
	rc, err := c.SyscallConn()
	testrig.Must(t, err)
	_ = rc.Control(func(fd uintptr) { v, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) })
	testrig.Must(t, err)
	return v
}

// TestTimeouts sets what TCP itself watches over, also below another connection.
func TestTimeouts(t *testing.T) {
	a, b := pair(t)
	for _, c := range []*Conn{a, New(&onSocket{Conn: b.Conn})} {
		testrig.Must(t, c.SetUserTimeout(1500*time.Millisecond))
		testrig.Must(t, c.SetKeepAlive(net.KeepAliveConfig{Enable: true, Idle: 7 * time.Second,
			Interval: 3 * time.Second, Count: 2}))
		socket := basis(c.Conn).(*net.TCPConn)
		for name, want := range map[int]int{unix.TCP_USER_TIMEOUT: 1500, unix.TCP_KEEPIDLE: 7,
			unix.TCP_KEEPINTVL: 3, unix.TCP_KEEPCNT: 2} {
			if got := option(t, socket, name); got != want {
				t.Errorf("option %d is %d, want %d", name, got, want)
			}
		}
	}
	c := New(&recorder{})
	if err := c.SetUserTimeout(time.Second); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without TCP: %v", err)
	}
	if err := c.SetKeepAlive(net.KeepAliveConfig{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without TCP: %v", err)
	}
}
