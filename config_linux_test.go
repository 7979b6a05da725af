package iwarp_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
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
			iwarp.QPConfig{KeepAlive: net.KeepAliveConfig{Enable: true, Idle: 7 * time.Second, Interval: 3 * time.Second, Count: 2}},
			map[int]int{unix.TCP_USER_TIMEOUT: 0, unix.TCP_KEEPIDLE: 7, unix.TCP_KEEPINTVL: 3, unix.TCP_KEEPCNT: 2},
		},
	} {
		var socket *net.TCPConn
		ini, res := setup{Dialer: iwarp.Dialer{QP: c.cfg, Wrap: func(conn net.Conn) (net.Conn, error) {
			socket = conn.(*net.TCPConn)
			return conn, nil
		}}}.connect(t)
		for option, want := range c.want {
			if got := optionOf(t, socket, option); got != want {
				t.Errorf("%+v: option %d is %d, want %d", c.cfg, option, got, want)
			}
		}
		finish(t, ini, res)
	}
}

// optionOf asks a socket for an option of TCP.
func optionOf(t *testing.T, c *net.TCPConn, name int) (v int) {
	t.Helper()
	rc, err := c.SyscallConn()
	must(t, err)
	must(t, rc.Control(func(fd uintptr) { v, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) }))
	must(t, err)
	return v
}
