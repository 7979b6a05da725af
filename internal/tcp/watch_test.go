package tcp

import (
	"bufio"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// keepsBuffer reports whether a connection has a receive buffer of a pool.
func keepsBuffer(c *Conn) bool {
	c.rx.mu.Lock()
	defer c.rx.mu.Unlock()
	return c.rx.big != nil || c.rx.kept != nil
}

// TestLeaveKeepsWatch has few consumers come: as soon as one leaves, the bell is armed, and no buffer kept. So it is
// after many, where the role is withheld from more.
func TestLeaveKeepsWatch(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.write("x")
	s.wantRead("x")
	if !keepsBuffer(s.c) {
		t.Error("it has read without a buffer")
	}
	s.c.ReleaseRole(false, false)
	if keepsBuffer(s.c) {
		t.Error("nobody reads, and it has a buffer")
	}
	for range steady - 1 {
		s.wantWatch()
		s.acquire()
		s.c.ReleaseRole(false, false)
	}
	s.wantWatch()
	s.acquire()
	s.c.role.mu.Lock()
	s.c.role.timed = false
	s.c.role.mu.Unlock()
	s.c.ReleaseRole(true, false)
	s.wantWatch()
}

// wantWatch looks whether the bell is armed, and not its timer.
func (s *standby) wantWatch() {
	s.t.Helper()
	s.c.role.mu.Lock()
	defer s.c.role.mu.Unlock()
	if r := &s.c.role; !r.armed || r.timed {
		s.t.Errorf("after %d leads the bell is armed: %t, its timer runs: %t", r.leads, r.armed, r.timed)
	}
}

// TestCloseTakesBellDown closes the connection, and then looks for the bell.
func TestCloseTakesBellDown(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.ReleaseRole(false, false)
	testrig.Must(t, s.c.Close())
	if s.c.AcquireRole() {
		t.Error("a consumer takes the role after Close")
	}
	if s.c.CanYieldRole() {
		t.Error("there is a bell after Close")
	}
}

// TestBellOfLostSocket closes the socket behind the connection's back: who takes the role finds that the bell cannot be
// disarmed, and the receiving goroutine gets it back.
func TestBellOfLostSocket(t *testing.T) {
	s := standBack(t)
	s.acquire()
	testrig.Must(t, s.c.Conn.Close())
	s.c.ReleaseRole(false, false)
	s.wantBack(1)
	if s.c.CanYieldRole() {
		t.Error("there is a bell")
	}
}

// TestContextsWatched has consumers come with contexts. One that comes for the first time is watched until its
// consumer leaves, and one that comes again until another comes, or the end.
func TestContextsWatched(t *testing.T) {
	s := standBack(t)
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	second, cancel2 := context.WithCancel(t.Context())
	defer cancel2()
	lead := func(ctx context.Context) (unwatch func() bool) {
		s.acquire()
		s.c.InterruptWith(ctx)
		unwatch = s.c.role.stop
		s.c.ReleaseRole(false, false)
		return unwatch
	}
	if unwatch := lead(first); unwatch() {
		t.Error("its consumer has left, and it is watched")
	}
	again := lead(first)
	if s.c.role.stop == nil {
		t.Error("it came again, and is not watched on")
	}
	lead(second)
	if again() {
		t.Error("another came, and it is watched")
	}
	again = lead(second)
	s.acquire()
	s.c.End()
	if again() {
		t.Error("the connection is over, and it is watched")
	}
}

// TestSendWaits sends more than the socket takes, and nobody reads: Send waits until its time is over. What the peer
// acknowledges late has room made for a little more.
func TestSendWaits(t *testing.T) {
	a, _ := pair(t)
	if a.raw == nil {
		t.Skip("Send is the connection's Write here")
	}
	block := [][]byte{make([]byte, 1<<20)}
	for n := 1; n > 0; {
		var err error
		n, _, err = a.TrySend(block)
		testrig.Must(t, err)
	}
	testrig.Must(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	for {
		n, err := a.Send(block)
		if n > 0 && err == nil {
			continue
		}
		if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("sent %d bytes: %v", n, err)
		}
		return
	}
}

// TestNothingBesideAhead has bytes on the socket, and others that were read ahead of them: whoever reads what is there
// leaves them to Recv, in their order.
func TestNothingBesideAhead(t *testing.T) {
	a, b := pair(t)
	sendAll(t, a, []byte("abc"))
	r := bufio.NewReader(b.Conn)
	_, err := r.Peek(3)
	testrig.Must(t, err)
	sendAll(t, a, []byte("def"))
	c := New(NewBuffered(b.Conn, r))
	if c.raw != nil {
		arrived(t, b)
	}
	if ok, err := c.TryRecv(); ok || err != nil {
		t.Errorf("TryRecv: %t, %v", ok, err)
	}
	if ok, err := c.RecvRest(); ok || err != nil || len(c.Unread()) > 0 {
		t.Errorf("RecvRest: %t, %v, %q", ok, err, c.Unread())
	}
	c.Done()
	if got := string(recv(t, c, 3, 0)) + string(recv(t, c, 3, 0)); got != "abcdef" {
		t.Errorf("received %q", got)
	}
	if c.raw != nil {
		sendAll(t, a, []byte("g"))
		arrived(t, b)
		if ok, err := c.TryRecv(); !ok || err != nil {
			t.Fatalf("when nothing is ahead any more: %t, %v", ok, err)
		}
		c.Done()
	}
}

// TestBufferedReads reads what was buffered, and then the connection itself.
func TestBufferedReads(t *testing.T) {
	a, b := pair(t)
	sendAll(t, a, []byte("abc"))
	r := bufio.NewReader(b.Conn)
	_, err := r.Peek(3)
	testrig.Must(t, err)
	c := NewBuffered(b.Conn, r)
	sendAll(t, a, []byte("def"))
	var got []byte
	for buf := make([]byte, 2); len(got) < 6; {
		n, err := c.Read(buf)
		if n == 0 || err != nil {
			t.Fatalf("read %d bytes: %v", n, err)
		}
		got = append(got, buf[:n]...)
	}
	if string(got) != "abcdef" {
		t.Errorf("read %q", got)
	}
}
