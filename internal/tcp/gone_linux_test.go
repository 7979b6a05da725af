package tcp

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestClosedSocket asks and tells a socket that is closed: each says so, or knows nothing.
func TestClosedSocket(t *testing.T) {
	a, _ := pair(t)
	a.Close()
	if err := a.SetUserTimeout(time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a timeout: %v", err)
	}
	if Waiting(a.Conn) {
		t.Error("bytes are waiting")
	}
	if n := emssOf(a); n != 0 {
		t.Errorf("EMSS %d", n)
	}
	if _, _, err := a.TrySend([][]byte{[]byte("x")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("sent: %v", err)
	}
}

// TestNoSocket is the same of a connection that was never made.
func TestNoSocket(t *testing.T) {
	c := New(new(net.TCPConn))
	if err := c.SetUserTimeout(time.Second); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a timeout: %v", err)
	}
	if Waiting(c.Conn) {
		t.Error("bytes are waiting")
	}
	if p, ok := c.Path(); ok {
		t.Errorf("a path: %+v", p)
	}
}

// TestSendAfterReset sends to a peer that has reset the connection: one slice, several,
// and records of either kind.
func TestSendAfterReset(t *testing.T) {
	for _, records := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			a, b := pair(t)
			a.EndRecords(records)
			b.Conn.(*net.TCPConn).SetLinger(0)
			b.Close()
			if err := a.Recv(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("received: %v", err)
			}
			a.Done()
			slices := [][]byte{[]byte("one"), []byte("two")}[:n]
			if sent, err := a.Send(slices); sent > 0 || !errors.Is(err, syscall.EPIPE) {
				t.Errorf("records %t, %d slices: sent %d bytes, %v", records, n, sent, err)
			}
		}
	}
}

// TestResetBelow resets a connection that is built on a socket: the peer learns of that, and of no orderly end.
func TestResetBelow(t *testing.T) {
	a, b := pair(t)
	_ = New(&onSocket{Conn: a.Conn}).Reset()
	err := b.Recv()
	b.Done()
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer has %v", err)
	}
}
