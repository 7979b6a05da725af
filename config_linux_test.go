package iwarp_test

import (
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"golang.org/x/sys/unix"
)

// TestTimeoutsReachTCP: TCP has the KeepAlive and the UserTimeout of the QPConfig.
func TestTimeoutsReachTCP(t *testing.T) {
	for _, c := range []struct {
		cfg  iwarp.QPConfig
		want map[int]int
	}{
		{iwarp.QPConfig{UserTimeout: 1500 * time.Millisecond}, map[int]int{unix.TCP_USER_TIMEOUT: 1500}},
		{iwarp.QPConfig{UserTimeout: 7 * time.Second}, map[int]int{unix.TCP_USER_TIMEOUT: 7000}},
		{
			iwarp.QPConfig{KeepAlive: net.KeepAliveConfig{Enable: true, Idle: 7 * time.Second,
				Interval: 3 * time.Second, Count: 2}},
			map[int]int{unix.TCP_USER_TIMEOUT: 0, unix.TCP_KEEPIDLE: 7, unix.TCP_KEEPINTVL: 3, unix.TCP_KEEPCNT: 2},
		},
	} {
		var socket *net.TCPConn
		ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: c.cfg, Wrap: func(conn net.Conn) (net.Conn, error) {
			socket = conn.(*net.TCPConn)
			return conn, nil
		}}}.Connect(t)
		for option, want := range c.want {
			if got := optionOf(t, socket, option); got != want {
				t.Errorf("%+v: option %d is %d, want %d", c.cfg, option, got, want)
			}
		}
		rig.Finish(t, ini, res)
	}
}

// optionOf asks a socket for an option of TCP.
func optionOf(t *testing.T, c *net.TCPConn, name int) (v int) {
	t.Helper()
	rc, err := c.SyscallConn()
	rig.Must(t, err)
	rig.Must(t, rc.Control(func(fd uintptr) { v, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) }))
	rig.Must(t, err)
	return v
}
