package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/spin"
	"github.com/goiwarp/iwarp/internal/testrig"
)

func init() { // the tests look on machines of one processor too
	process.CPU = func() spin.CPU { return spin.CPU{Threads: 64} }
}

// untilLooks has waits be short until the next one looks.
func untilLooks(s *spin.Spinner) {
	for !s.Looks() {
		s.Slept(0)
	}
}

// receives has the peer send a byte, and a connection receive it.
func (c *Conn) receives(t *testing.T, peer *Conn) {
	t.Helper()
	sendAll(t, peer, []byte("x"))
	testrig.Must(t, c.RecvSoon())
	c.Consume(len(c.Unread()), 0)
	c.Done()
}

// looking is a pair of connections of which the first looks, for as long as a test takes.
func looking(t *testing.T) (c, peer *Conn) {
	t.Helper()
	c, peer = pair(t)
	c.spin = spin.New(time.Hour)
	ctx := testrig.Within(t)
	untilLooks(c.spin)
	for sendAll(t, peer, []byte("x")); c.Spun() == 0; sendAll(t, peer, []byte("x")) { // until the process has places
		testrig.Must(t, ctx.Err())
		testrig.Must(t, c.RecvSoon())
		c.Consume(len(c.Unread()), 0)
		c.Done()
		untilLooks(c.spin)
	}
	testrig.Must(t, c.RecvSoon())
	c.Consume(len(c.Unread()), 0)
	c.Done()
	return c, peer
}

// wakesFrom returns from how many bytes on a socket wakes its reader.
func wakesFrom(t *testing.T, c *Conn) (bytes int) {
	t.Helper()
	var err error
	testrig.Must(t, c.raw.rc.Control(func(fd uintptr) {
		bytes, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
	}))
	testrig.Must(t, err)
	return bytes
}

// TestLookFinds: a look brings bytes as Recv does.
func TestLookFinds(t *testing.T) {
	c, peer := looking(t)
	spun := c.Spun()
	go func() {
		time.Sleep(2 * time.Millisecond)
		_, _ = peer.Send([][]byte{[]byte("found")})
	}()
	testrig.Must(t, c.RecvSoon())
	if got := string(c.Unread()); got != "found" {
		t.Errorf("%q", got)
	}
	c.Done()
	if c.Spun() == spun {
		t.Error("it has not looked")
	}
}

// TestLookEndsWithConnection: a FIN, a RST, a Close and a reset of this end, as by Abort, end a look. The error is that
// of Recv.
func TestLookEndsWithConnection(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(c, peer *Conn) error
		want error
	}{
		"FIN":   {func(_, peer *Conn) error { return peer.CloseWrite() }, io.EOF},
		"RST":   {func(_, peer *Conn) error { return peer.Reset() }, unix.ECONNRESET},
		"Close": {func(c, _ *Conn) error { return c.Close() }, net.ErrClosed},
		"Abort": {func(c, _ *Conn) error { return c.Reset() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			c, peer := looking(t)
			go func() {
				time.Sleep(time.Millisecond)
				_ = end.by(c, peer)
			}()
			if err := c.RecvSoon(); !errors.Is(err, end.want) {
				t.Errorf("%v, want %v", err, end.want)
			}
			c.Done()
		})
	}
}

// TestLookInterrupted: an interrupt ends the look of a consumer, before it begins or while it goes on.
func TestLookInterrupted(t *testing.T) {
	c, _ := looking(t)
	for range 20 {
		c.Announce()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Interrupt()
		}()
		if interrupted, err := c.RecvTaken(); !interrupted || err != nil {
			t.Fatalf("interrupted %t: %v", interrupted, err)
		}
		<-ended
		if !c.spin.Looks() {
			t.Fatal("an interrupt keeps it from looking")
		}
	}
	if c.poked.Load() {
		t.Error("the next look ends at once")
	}
}

// TestLookEndsWithContext: a context that is canceled, or whose time is up, ends the look that a consumer is in.
func TestLookEndsWithContext(t *testing.T) {
	for name, begin := range map[string]func() (context.Context, context.CancelFunc){
		"canceled": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		},
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := looking(t)
			spun := c.Spun()
			ctx, cancel := begin()
			defer cancel()
			c.InterruptWith(ctx)
			c.Announce()
			if interrupted, err := c.RecvTaken(); !interrupted || err != nil {
				t.Errorf("interrupted %t: %v", interrupted, err)
			}
			if ctx.Err() == nil || c.Spun() == spun {
				t.Errorf("the context: %v; looked for %v", ctx.Err(), c.Spun()-spun)
			}
		})
	}
}

// pollCount returns how often the socket was polled.
func (c *Conn) pollCount() uint32 {
	c.rx.mu.Lock()
	defer c.rx.mu.Unlock()
	return c.rx.polls
}

// TestLongSleep: a wait that slept for long does not have the next one look.
func TestLongSleep(t *testing.T) {
	c, peer := pair(t)
	c.spin = spin.New(time.Millisecond)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, _ = peer.Send([][]byte{[]byte("x")})
	}()
	testrig.Must(t, c.RecvSoon())
	c.Done()
	if c.spin.Looks() {
		t.Error("it looks after a long wait")
	}
}

// TestShortSleeps: after some waits that slept for a short time the next one looks.
func TestShortSleeps(t *testing.T) {
	c, peer := pair(t)
	c.spin = spin.New(time.Hour)
	for n := 0; !c.spin.Looks(); n++ {
		if n == 100 {
			t.Fatalf("it does not look after %d short waits", n)
		}
		c.receives(t, peer)
	}
}

// TestSleepAfterPolls: a consumer that takes the role after it has polled is woken, though polls have suppressed that.
func TestSleepAfterPolls(t *testing.T) {
	s := standBack(t)
	s.c.spin = spin.New(1) // a look that is over before its first poll
	untilLooks(s.c.spin)
	s.free()
	s.c.role.mu.Lock()
	s.c.role.suppression = &suppression{every: time.Hour}
	s.c.role.mu.Unlock()
	for ctx := testrig.Within(t); wakesFrom(t, s.c) < suppressBytes; s.c.SuppressWakeUps() { // as one who polls
		testrig.Must(t, ctx.Err())
	}
	s.acquire()
	s.c.Announce()
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, _ = s.peer.Send([][]byte{[]byte("x")})
	}()
	_, err := s.c.RecvTaken()
	testrig.Must(t, err)
	s.c.Done()
}

// TestLooksWakeNobody: while looks find what arrives, it wakes nobody. A wait that sleeps ends that, and one who waits
// without reading.
func TestLooksWakeNobody(t *testing.T) {
	c, peer := looking(t)
	quiet := func() {
		t.Helper()
		polls := c.pollCount()
		for i := range 20 {
			if !c.spin.Steady() && wakesFrom(t, c) != 1 {
				t.Fatalf("after %d looks what arrives wakes nobody", i)
			}
			c.receives(t, peer)
		}
		if n := wakesFrom(t, c); n < suppressBytes {
			t.Fatalf("%d bytes wake a reader that looks", n)
		}
		if c.pollCount() < polls+20 {
			t.Error("looks are no polls: the timer would end this while they go on")
		}
	}
	sleep := func() {
		t.Helper()
		c.spin = spin.New(time.Hour) // it sleeps first
		c.receives(t, peer)
		untilLooks(c.spin)
		if n := wakesFrom(t, c); n != 1 {
			t.Errorf("asleep, %d bytes wake it", n)
		}
	}
	quiet()
	c.RearmReads()
	if n := wakesFrom(t, c); n != 1 {
		t.Errorf("with one who waits, %d bytes wake it", n)
	}
	sleep()
	quiet()
	sleep()
}

// TestLooksBesidePolls: a wait that sleeps leaves what one who polls has suppressed.
func TestLooksBesidePolls(t *testing.T) {
	c, peer := looking(t)
	c.role.suppression = &suppression{every: time.Hour}
	c.SuppressWakeUps()
	for range 20 {
		c.receives(t, peer)
	}
	c.spin = spin.New(time.Hour) // it sleeps first
	c.receives(t, peer)
	if n := wakesFrom(t, c); n < suppressBytes {
		t.Errorf("%d bytes wake a goroutine beside one who polls", n)
	}
}

// TestNothingSuppressedAfterEnd: a look that was on its way when the connection ended suppresses nothing.
func TestNothingSuppressedAfterEnd(t *testing.T) {
	c, peer := looking(t)
	for !c.spin.Steady() {
		c.receives(t, peer)
	}
	c.allowBeforeSleep()
	c.End()
	if c.suppressBetweenLooks(); wakesFrom(t, c) != 1 {
		t.Error("what arrives after the end wakes nobody")
	}
}

// TestRoleWithLooks: a consumer that gives the role up ends what its looks have set, unless it is expected back.
func TestRoleWithLooks(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.spin = spin.New(time.Hour)
	untilLooks(s.c.spin)
	for i := range 40 {
		s.write("x")
		s.c.Announce()
		_, err := s.c.RecvTaken()
		testrig.Must(t, err)
		s.c.Consume(len(s.c.Unread()), 0)
		s.c.Done()
		for !s.c.spin.Looks() {
			if s.c.spin.Slept(0); i == 39 {
				t.Fatal("it does not look")
			}
		}
	}
	if n := wakesFrom(t, s.c); n < suppressBytes {
		t.Fatalf("%d bytes wake a reader that looks", n)
	}
	s.c.ReleaseRole(false, false)
	if n := wakesFrom(t, s.c); n != 1 {
		t.Errorf("nobody reads, and %d bytes ring", n)
	}
	s.write("y")
	s.wantBack(1)
}

// TestSteadyLooks: a consumer that is expected back leaves what its looks have set, so that it costs no system call each
// time. If it does not come back, the bell's timer ends that.
func TestSteadyLooks(t *testing.T) {
	s := steadied(t)
	s.c.spin = spin.New(time.Hour)
	untilLooks(s.c.spin)
	ctx := testrig.Within(t)
	for kept := false; !kept; { // the bell's timer may come between
		testrig.Must(t, ctx.Err())
		s.write("x")
		s.c.Announce()
		_, err := s.c.RecvTaken()
		testrig.Must(t, err)
		s.c.Consume(len(s.c.Unread()), 0)
		s.c.Done()
		untilLooks(s.c.spin)
		s.c.ReleaseRole(false, false)
		s.acquire()
		kept = wakesFrom(t, s.c) >= suppressBytes
	}
	s.c.ReleaseRole(false, false)
	for ; wakesFrom(t, s.c) != 1; time.Sleep(lazy) {
		testrig.Must(t, ctx.Err())
	}
	s.write("y")
	<-s.back
}

// TestLookGivesWay: one who reads elsewhere ends a look, and gets what is there.
func TestLookGivesWay(t *testing.T) {
	c, peer := looking(t)
	for !c.spin.Steady() {
		c.receives(t, peer)
	}
	got := make(chan string)
	go func() {
		testrig.Must(t, c.RecvSoon())
		s := string(c.Unread())
		c.Done()
		got <- s
	}()
	c.rx.mu.Lock()
	for range 100 {
		runtime.Gosched()
	}
	c.rx.mu.Unlock()
	sendAll(t, peer, []byte("late"))
	if s := <-got; s != "late" {
		t.Errorf("%q", s)
	}
	if c.spin.Steady() {
		t.Error("the look went on beside one who reads")
	}
}

// TestNoLooks: there are none where there is no socket, with TLS, and while bytes are buffered before those of the
// socket.
func TestNoLooks(t *testing.T) {
	a, _ := piped(t)
	if a.SetSpin(time.Hour); a.spin != nil {
		t.Error("looks without a socket")
	}
	plain, far, err := testrig.TCPPair(t.Context())
	testrig.Must(t, err)
	defer far.Close()
	secure := own(t, tls.Client(plain, new(tls.Config)))
	if secure.SetSpin(time.Hour); secure.spin != nil {
		t.Error("looks below TLS")
	}
	c, _ := looking(t)
	if c.isAhead.Store(true); c.looks() {
		t.Error("looks while bytes are buffered")
	}
	if c.SuppressWakeUps(); wakesFrom(t, c) != 1 {
		t.Error("what arrives wakes nobody while bytes are buffered")
	}
	c.isAhead.Store(false)
}
