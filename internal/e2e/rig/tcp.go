package rig

import (
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// newPath returns the two ends of a connection on which bytes take some time each way,
// as many of them as there are. Without a delay it is newPipe.
func newPath(t testing.TB, delay time.Duration) (a, b net.Conn) {
	if delay == 0 {
		return NewPipe(t)
	}
	a, near := NewPipe(t)
	far, b := NewPipe(t)
	go carry(near, far, delay)
	go carry(far, near, delay)
	return a, b
}

// carry brings bytes, and the FIN after them, from one connection to another.
func carry(from, to net.Conn, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	way := make(chan piece, 1<<12)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 1<<16)
			n, err := from.Read(b)
			way <- piece{b[:n], time.Now().Add(delay)}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if len(p.bytes) > 0 {
			_, _ = to.Write(p.bytes)
		}
	}
	_ = to.(interface{ CloseWrite() error }).CloseWrite()
}

// DialTCP opens a plain TCP connection.
func DialTCP(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	Must(t, err)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(Soon))
	return c
}

// NewPipe returns the two ends of a connection in memory, for virtual time. It holds no
// bytes: a write waits for its reader.
func NewPipe(t testing.TB) (a, b net.Conn) {
	x, y := testrig.Pipe("x", "y")
	_, _ = x.SetWriteBuffer(-1), y.SetWriteBuffer(-1)
	t.Cleanup(func() { _ = x.Close(); _ = y.Close() })
	return x, y
}

// ListenTCP listens without knowing anything of MPA.
func ListenTCP(t testing.TB) net.Listener {
	t.Helper()
	ln, err := testrig.ListenTCP(t.Context())
	Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// TCPPair returns both ends of a TCP connection.
func TCPPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	a, b, err := testrig.TCPPair(t.Context())
	Must(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	_, _ = a.SetDeadline(time.Now().Add(Soon)), b.SetDeadline(time.Now().Add(Soon))
	return a, b
}
