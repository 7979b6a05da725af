package tcp

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestRenew has the receiving goroutine's wait end without bytes, once, wherever it is by then; consumers notice nothing
// of it, nor does what comes.
func TestRenew(t *testing.T) {
	a, b := pair(t)
	renewed := func(want bool) {
		t.Helper()
		if got := a.IsRenewed(a.Recv()); got != want {
			t.Errorf("Recv has returned because of Renew: %t", got)
		}
		if !want {
			a.Done()
		}
	}
	if a.raw == nil {
		t.Skip("no socket")
	}
	time.AfterFunc(time.Millisecond, a.Renew)
	renewed(true)
	a.Renew()
	a.Renew()
	renewed(true)
	_, err := b.Conn.Write([]byte("x"))
	testrig.Must(t, err)
	a.Renew()
	renewed(true)
	renewed(false)
	if got := string(a.Unread()); got != "x" {
		t.Errorf("%q has come", got)
	}
	testrig.Must(t, b.CloseWrite())
	renewed(false) // it is the end that Recv tells of
	a.Renew()
	a.End()
	a.Renew()
	testrig.Must(t, a.CloseWrite())
	if known, err := a.AwaitEnd(); known != canRing || err != nil {
		t.Errorf("the wait for the end has ended; known: %t, %v", known, err)
	}
}

// TestRenewElsewhere: what is no socket is not renewed, and a deadline of somebody else's is not taken for Renew's.
func TestRenewElsewhere(t *testing.T) {
	a, _ := pair(t)
	plain := New(&onSocket{Conn: a.Conn})
	plain.Renew()
	if plain.role.renewed {
		t.Error("the wait of what is no socket ends")
	}
	testrig.Must(t, a.SetReadDeadline(time.Unix(1, 0)))
	err := a.Recv()
	if !errors.Is(err, os.ErrDeadlineExceeded) || a.IsRenewed(err) {
		t.Errorf("Recv has returned because of Renew: %v", err)
	}
	a.Done() // it is the caller's still
}

// TestRenewOfYielded has Renew come just before the receiving goroutine stands back: it does not interrupt a consumer.
func TestRenewOfYielded(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.Renew()
	s.write("x")
	s.wantRead("x")
	s.c.ReleaseRole(false, false)
	s.write("y")
	s.wantBack(1)
	recv(t, s.c, 1, 0)
	s.c.Renew()
	s.again()
	s.acquire()
	s.write("z")
	s.wantRead("z")
}
