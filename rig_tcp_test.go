package iwarp_test

import (
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// dialTCP opens a plain TCP connection.
func dialTCP(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(soon))
	return c
}

// newPipe returns the two ends of a connection in memory, for virtual time. It holds no
// octets: a write waits for its reader.
func newPipe(t testing.TB) (a, b net.Conn) {
	x, y := testrig.Pipe("x", "y")
	_, _ = x.SetWriteBuffer(-1), y.SetWriteBuffer(-1)
	t.Cleanup(func() { _ = x.Close(); _ = y.Close() })
	return x, y
}

// listenTCP listens without knowing anything of MPA.
func listenTCP(t testing.TB) net.Listener {
	t.Helper()
	ln, err := testrig.ListenTCP(t.Context())
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	a, b, err := testrig.TCPPair(t.Context())
	must(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	_, _ = a.SetDeadline(time.Now().Add(soon)), b.SetDeadline(time.Now().Add(soon))
	return a, b
}
