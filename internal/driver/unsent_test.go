package driver

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// telling returns an end whose close may take an hour, on a system that tells what TCP has sent.
func telling(t *testing.T, c net.Conn) *end {
	t.Helper()
	e := patient().on(t, c)
	if _, ok := e.tcp.Path(); !ok {
		t.Skip("the system does not tell")
	}
	return e
}

// sendAll sends so many bytes, all of which TCP takes.
func (e *end) sendAll(n int) {
	e.Helper()
	before := len(e.completions())
	e.post(engine.SendWork{SGL: listOf(e.region(make([]byte, n), 0), n)})
	e.awaitCompletions(before + 1)
}

// closeByHand begins a close with a round trip that is over at once. The timer is the test's: it calls onTimer.
func (e *end) closeByHand() {
	e.Conn.mu.Lock()
	e.timer = deadline.Timer[Conn]{}
	e.timer.Set(time.Now().Add(time.Hour), e.Conn, func(*Conn) {}) // and so at whatever it is set to
	e.machine.BeginClose(time.Now(), 1)
	e.release(turn{mode: sendNothing})
}

// wantHeld is what becomes of the FIN at a deadline.
func (e *end) wantHeld(held bool) {
	e.Helper()
	if e.onTimer(); e.finHeldBack().IsZero() == held {
		e.Errorf("the FIN is held back: %t", !held)
	}
}

// awaitTCP waits for what TCP says of the bytes that it was given.
func (e *end) awaitTCP(unsent bool) {
	e.Helper()
	for ctx := testrig.Within(e); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if p, _ := e.tcp.Path(); p.Unsent == unsent {
			return
		}
	}
	e.Fatalf("never unsent: %t", unsent)
}

// TestUnsent: what TCP could not send yet holds a FIN back, however often it is asked for, and then for a round trip
// more: it may have been sent just now, and the peer's next Read waits for it.
func TestUnsent(t *testing.T) {
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	e := telling(t, a)
	e.sendAll(512 << 10) // more than the peer's TCP takes
	e.awaitTCP(true)
	e.closeByHand()
	for range 3 {
		e.wantHeld(true)
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	e.awaitTCP(false)
	e.wantHeld(true)
	e.wantHeld(false)
}

// TestSentBefore: a FIN is held back for one round trip where TCP has sent everything by the beginning of that.
func TestSentBefore(t *testing.T) {
	a, _ := sockets(t)
	e := telling(t, a)
	e.sendAll(1)
	e.awaitTCP(false)
	e.closeByHand()
	e.wantHeld(false)
}

// withhold keeps the goroutine that will receive from a socket waiting, until release is called.
func withhold(t *testing.T, c *net.TCPConn) (release func()) {
	t.Helper()
	others, err := c.SyscallConn()
	testrig.Must(t, err)
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		// One goroutine at a time waits to read.
		_ = others.Read(func(uintptr) bool { close(begun); <-done; return true })
	}()
	<-begun
	release = sync.OnceFunc(func() { close(done) })
	t.Cleanup(release)
	return release
}

// TestReadBeforeFIN: a Read that has come is answered before the FIN, although the goroutine that receives has yet to
// run when the time of the FIN has come.
//
// Proves D30.
func TestReadBeforeFIN(t *testing.T) {
	a, b := sockets(t)
	release := withhold(t, a)
	defer release() // before the end closes, if the test fails
	peer, e := patient().on(t, b), telling(t, a)
	defer release()
	from := e.region([]byte("memory"), memory.RemoteRead)
	got := make([]byte, 6)
	to := peer.region(got, memory.LocalWrite)
	peer.post(engine.SendWork{Op: engine.OpRead, SGL: listOf(to, 6), RemoteSTag: from.STag()})
	for ctx := testrig.Within(t); !tcp.Waiting(a); time.Sleep(time.Millisecond) {
		testrig.Must(t, ctx.Err())
	}
	e.closeByHand()
	e.onTimer()
	if c := peer.awaitCompletions(1)[0]; c.Status != engine.StatusSuccess || string(got) != "memory" {
		t.Errorf("%v: %q", c.Status, got)
	}
}

// halfClosed has the peer send its FIN, and waits until that is taken in.
func (e *end) halfClosed(peer *net.TCPConn) {
	e.Helper()
	testrig.Must(e, peer.CloseWrite())
	e.await("the peer's FIN", func() bool { return e.noticed(engine.NoticeHalfClosed) })
}

// closesUnread begins to close after the peer's FIN, when TCP has not sent everything yet. It returns the peer's end.
func closesUnread(t *testing.T) (e *end, peer *net.TCPConn) {
	t.Helper()
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	e = telling(t, a)
	e.halfClosed(b)
	e.sendAll(512 << 10) // more than the peer's TCP takes
	e.awaitTCP(true)
	e.BeginClose()
	return e, b
}

// TestAcknowledgedLate: the end comes when the peer has it all.
func TestAcknowledgedLate(t *testing.T) {
	e, b := closesUnread(t)
	if e.ended() != nil {
		t.Error("the end comes before the peer has everything")
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	if end := e.awaitEnd(); end.State != engine.Idle || !errors.Is(end.Cause, engine.ErrPeerClosed) {
		t.Errorf("ended in %v with %v", end.State, end.Cause)
	}
}

// TestAcknowledgedSlowly: a peer that has acknowledged something by the end of its time has as much time again.
func TestAcknowledgedSlowly(t *testing.T) {
	e, b := closesUnread(t)
	by, owed := e.closesBy(), e.owed()
	_, err := io.ReadFull(b, make([]byte, 256<<10))
	testrig.Must(t, err)
	for ctx := testrig.Within(t); e.owed() == owed; time.Sleep(time.Millisecond) {
		testrig.Must(t, ctx.Err())
	}
	if e.onTimer(); !e.closesBy().After(by) {
		t.Error("no more time for a peer that has acknowledged something")
	}
	if end := e.ended(); end != nil {
		t.Errorf("ended with %v", end.Cause)
	}
}

// TestAcknowledgedNoMore: a peer that acknowledges nothing more after its FIN has no more time at a deadline than it
// had before, whichever end was the first to send its FIN.
func TestAcknowledgedNoMore(t *testing.T) {
	for _, first := range []bool{true, false} {
		for try := 0; !acknowledgedNoMore(t, first); try++ {
			if try == 20 {
				t.Fatal("the peer acknowledges something each time")
			}
		}
	}
}

// acknowledgedNoMore reports whether the peer has acknowledged nothing in the time of the test, as it is to.
func acknowledgedNoMore(t *testing.T, first bool) bool {
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	e := telling(t, a)
	e.sendAll(512 << 10) // more than the peer's TCP takes
	e.awaitTCP(true)
	if first {
		testrig.Must(t, e.BeginHalfClose())
	}
	owed := e.owed()
	e.halfClosed(b)
	if !first {
		e.BeginClose()
		owed++ // for the FIN
	}
	by := e.closesBy()
	if e.onTimer(); e.owed() != owed {
		return false
	}
	if !e.closesBy().Equal(by) {
		t.Errorf("more time, and our FIN the first: %t", first)
	}
	return true
}

// closesBy returns when a close is given up.
func (e *end) closesBy() time.Time {
	e.Conn.mu.Lock()
	defer e.Conn.mu.Unlock()
	return e.machine.Deadline()
}

// owed asks TCP what the peer has not acknowledged.
func (e *end) owed() int {
	e.Helper()
	owed, err := e.tcp.Unacked()
	testrig.Must(e, err)
	return owed
}
