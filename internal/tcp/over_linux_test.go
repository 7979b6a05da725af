package tcp

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestAwaitEnd ends connections after the peer's FIN.
func TestAwaitEnd(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(a, b *Conn) error
		want error
	}{
		"in order": {func(a, _ *Conn) error { return a.CloseWrite() }, nil},
		"reset":    {func(_, b *Conn) error { return b.Reset() }, syscall.ECONNRESET},
		"reset, of ours": {func(a, b *Conn) error {
			_ = a.CloseWrite()
			return b.Reset()
		}, nil}, // which the peer's system has acknowledged before
	} {
		a, b := pair(t)
		testrig.Must(t, b.CloseWrite())
		_ = a.Recv()
		a.Done()
		testrig.Must(t, c.do(a, b))
		if known, err := a.AwaitEnd(); !known || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, known %t", name, err, known)
		}
	}
}

// TestLossKept has several ask how a connection was lost after the peer's FIN, which the system tells the first of them
// only.
func TestLossKept(t *testing.T) {
	a, b := pair(t)
	testrig.Must(t, b.CloseWrite())
	_ = a.Recv()
	a.Done()
	testrig.Must(t, b.Reset())
	_, awaited := a.AwaitEnd()
	_, owes := a.Unacked()
	for who, err := range map[string]error{"AwaitEnd": awaited, "Unacked": owes, "CloseWrite": a.CloseWrite()} {
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestResetTaken has a write, or the end of our half, take the reset that the system tells once: whoever reads then
// reads no FIN. Bytes that came before it are read first.
func TestResetTaken(t *testing.T) {
	takers := map[string]func(c *Conn) error{
		"write":      func(c *Conn) error { _, _, err := c.TrySend([][]byte{[]byte("x")}); return err },
		"CloseWrite": (*Conn).CloseWrite,
	}
	for name, takes := range takers {
		for _, before := range []string{"", "before"} {
			a, b := pair(t)
			if before != "" {
				_, err := b.Send([][]byte{[]byte(before)})
				testrig.Must(t, err)
			}
			testrig.Must(t, b.Reset())
			a.awaitsClosed(t)
			if err := takes(a); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %v", name, err)
			}
			if before != "" {
				testrig.Must(t, a.Recv())
				if got := string(a.Unread()); got != before {
					t.Errorf("%s: read %q", name, got)
				}
				a.Consume(len(before), 0)
				a.Done()
			}
			if err := a.Recv(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: who reads has %v", name, err)
			}
			a.Done()
		}
	}
}

// awaitsClosed waits until the system has done with the connection, and leaves what it has to tell.
func (c *Conn) awaitsClosed(t *testing.T) {
	t.Helper()
	testrig.Must(t, c.raw.rc.Read(func(fd uintptr) bool {
		info := infos.Get().(*unix.TCPInfo)
		defer infos.Put(info)
		ask(int(fd), info)
		return info.State == tcpClose
	}))
}

// TestFINAfterOurs: the peer's FIN is one also where ours has gone before, so that the system has done with the
// connection.
func TestFINAfterOurs(t *testing.T) {
	a, b := pair(t)
	testrig.Must(t, a.CloseWrite())
	testrig.Must(t, b.CloseWrite())
	a.awaitsClosed(t)
	if err := a.Recv(); err != io.EOF {
		t.Errorf("who reads has %v", err)
	}
	a.Done()
}

// TestOwes fills the socket of a peer that does not read.
func TestOwes(t *testing.T) {
	a, b := pair(t)
	if owed, err := a.Unacked(); owed > 0 || err != nil {
		t.Errorf("nothing was sent: %d, %v", owed, err)
	}
	sent := 0
	for n, wait := 0, false; !wait; sent += n {
		n, wait, _ = a.TrySend([][]byte{make([]byte, 1<<20)})
	}
	testrig.Must(t, a.CloseWrite())
	if owed, err := a.Unacked(); owed < 2 || owed > sent+1 || err != nil {
		t.Errorf("%d bytes and a FIN were sent: %d, %v", sent, owed, err)
	}
	testrig.Must(t, b.Reset())
	if owed, err := a.Unacked(); owed > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("lost: %d, %v", owed, err)
	}
	a.Close()
	if known, err := a.AwaitEnd(); known || errors.Is(err, net.ErrClosed) {
		t.Errorf("closed here: %t, %v", known, err)
	}
}
