package tcp

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A standby is a connection whose receiving goroutine stands back.
type standby struct {
	t       *testing.T
	c, peer *Conn
	// how often consumers had the role, when it is the receiving goroutine's again; negative: it is over
	back chan int
}

func standBack(t *testing.T) *standby {
	t.Helper()
	if !canRing {
		t.Skip("the receiving goroutine always reads here")
	}
	c, peer := pair(t)
	s := &standby{t: t, c: c, peer: peer}
	s.again()
	return s
}

// again has the receiving goroutine stand back.
func (s *standby) again() {
	s.back = make(chan int, 1)
	go func() {
		leads, again := s.c.YieldRole()
		if !again {
			leads = -1
		}
		s.back <- leads
	}()
}

// free waits until the receiving goroutine has stood back.
func (s *standby) free() {
	s.t.Helper()
	comesTrue(s.t, &s.c.role.mu, func() bool { return s.c.role.state == free })
}

// comesTrue waits until something holds that a lock guards.
func comesTrue(t *testing.T, mu *sync.Mutex, holds func() bool) {
	t.Helper()
	for ctx := testrig.Within(t); ; runtime.Gosched() {
		mu.Lock()
		ok := holds()
		mu.Unlock()
		if ok {
			return
		}
		testrig.Must(t, ctx.Err())
	}
}

// acquire is a consumer's AcquireRole, as soon as the receiving goroutine has stood back.
func (s *standby) acquire() {
	s.t.Helper()
	for ctx := testrig.Within(s.t); !s.c.AcquireRole(); runtime.Gosched() {
		if ctx.Err() != nil {
			s.t.Fatal("the role does not become free")
		}
	}
}

func (s *standby) write(b string) { sendAll(s.t, s.peer, []byte(b)) }

// wantBack waits until the receiving goroutine has the role again.
func (s *standby) wantBack(leads int) {
	s.t.Helper()
	select {
	case got := <-s.back:
		if got != leads {
			s.t.Errorf("back after %d leads, want %d", got, leads)
		}
	case <-testrig.Within(s.t).Done():
		s.t.Fatal("the receiving goroutine does not get its role back")
	}
}

// wantAway looks whether it has not.
func (s *standby) wantAway() {
	s.t.Helper()
	select {
	case got := <-s.back:
		s.t.Fatalf("the receiving goroutine is back, after %d leads", got)
	default:
	}
}

// wantRead has the consumer receive.
func (s *standby) wantRead(want string) {
	s.t.Helper()
	s.c.Announce()
	interrupted, err := s.c.RecvTaken()
	if interrupted || err != nil {
		s.t.Fatal(interrupted, err)
	}
	if b := s.c.Unread(); string(b) != want {
		s.t.Errorf("received %q, want %q", b, want)
	}
	s.c.Consume(len(s.c.Unread()), 0)
	s.c.Done()
}

func (s *standby) wantInterrupted() {
	s.t.Helper()
	if interrupted, err := s.c.RecvTaken(); !interrupted || err != nil {
		s.t.Fatalf("interrupted: %v, %v", interrupted, err)
	}
}

// TestBell has whatever comes while nobody reads give the role back to the receiving goroutine,
// also if it was there before.
func TestBell(t *testing.T) {
	for name, come := range map[string]func(*standby){
		"bytes": func(s *standby) { s.write("x") },
		"FIN":   func(s *standby) { testrig.Must(s.t, s.peer.CloseWrite()) },
		"RST":   func(s *standby) { testrig.Must(s.t, s.peer.Reset()) },
		"Close": func(s *standby) { testrig.Must(s.t, s.c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := standBack(t)
			s.wantAway()
			come(s)
			s.wantBack(0)
			s.again()
			s.wantBack(0)
			if s.c.AcquireRole() {
				t.Error("a consumer took what the receiving goroutine has")
			}
			err := s.c.Recv()
			s.c.Done()
			if name == "bytes" && err != nil || name == "FIN" && !errors.Is(err, io.EOF) || name == "Close" &&
				!errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// TestTake has consumers receive in turns, and bytes that come between two of them go to
// whoever is first.
func TestTake(t *testing.T) {
	s := standBack(t)
	for range 3 {
		s.acquire()
		if s.c.AcquireRole() {
			t.Fatal("two consumers have the role")
		}
		s.write("hello")
		s.wantRead("hello")
		s.wantAway()
		s.c.ReleaseRole(false, false)
	}
	s.write("bye")
	s.wantBack(3)
	if got := recv(t, s.c, 3, 0); string(got) != "bye" {
		t.Errorf("received %q", got)
	}
}

// TestLookOut has consumers come so often that the bell would stay disarmed, but for somebody who waits and does not
// read: the bell is armed at once, whether that one has begun to wait while a consumer reads, after it has left, or
// long before.
func TestLookOut(t *testing.T) {
	for name, leave := range map[string]func(*Conn){
		"before": func(c *Conn) { c.ReleaseRole(false, true) },
		"while":  func(c *Conn) { c.RearmReads(); c.ReleaseRole(false, false) },
		"after":  func(c *Conn) { c.ReleaseRole(false, false); c.RearmReads() },
	} {
		t.Run(name, func(t *testing.T) {
			s := steadied(t)
			leave(s.c)
			s.wantArmed(true)
			s.acquire()
			s.c.ReleaseRole(false, false)
			s.wantArmed(false) // that was for one time
		})
	}
}

func (s *standby) wantArmed(want bool) {
	s.t.Helper()
	s.c.role.mu.Lock()
	defer s.c.role.mu.Unlock()
	if s.c.role.armed != want {
		s.t.Errorf("the bell is armed: %v", !want)
	}
}

func (s *standby) wantTimed(want bool) {
	s.t.Helper()
	s.c.role.mu.Lock()
	defer s.c.role.mu.Unlock()
	if s.c.role.timed != want {
		s.t.Errorf("the bell's timer runs: %v", !want)
	}
}

// standsBy reports whether a receiving goroutine waits for what a consumer says of the end of the connection, and takes
// no processor meanwhile.
func standsBy() bool {
	b := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(stack, ".YieldRole(") && strings.Contains(stack, "[sync.Cond.Wait") {
			return true
		}
	}
	return false
}

// TestEndTaken ends the connection while a consumer has the role: the receiving goroutine waits
// for what the consumer says of it.
func TestEndTaken(t *testing.T) {
	for name, say := range map[string]struct {
		do   func(*Conn)
		want int
	}{
		"found": {func(c *Conn) {
			c.Announce()
			if _, err := c.RecvTaken(); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			c.Release()
			c.End()
			c.Done()
		}, -1},
		"not found": {func(c *Conn) { c.ReleaseRole(false, false) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := standBack(t)
			s.acquire()
			testrig.Must(t, s.c.Close())
			for ctx := testrig.Within(t); !standsBy(); runtime.Gosched() {
				s.wantAway()
				testrig.Must(t, ctx.Err())
			}
			say.do(s.c)
			s.wantBack(say.want)
			if s.c.AcquireRole() {
				t.Error("taken after the end")
			}
			if s.c.CanYieldRole() {
				t.Error("there is a bell after the end")
			}
		})
	}
}

// TestNoBell: without a socket the receiving goroutine always reads.
func TestNoBell(t *testing.T) {
	c, _ := piped(t)
	if c.CanYieldRole() || c.AcquireRole() {
		t.Error("a bell on a connection that is no socket")
	}
	if leads, again := c.YieldRole(); leads != 0 || !again {
		t.Error(leads, again)
	}
}

// TestRole has consumers and the receiving goroutine hand the role to each other while a
// stream comes, with interruptions: not a byte is lost or comes twice.
func TestRole(t *testing.T) {
	s := standBack(t)
	const size = 200_000
	var sum, got int
	var mu sync.Mutex
	count := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, b := range s.c.Unread() {
			if b != byte(got) {
				t.Errorf("byte %d is %d", got, b)
			}
			got++
		}
		s.c.Consume(len(s.c.Unread()), 0)
	}
	ended := func() bool { mu.Lock(); defer mu.Unlock(); return got >= size }
	var all sync.WaitGroup
	all.Go(func() {
		for !ended() {
			<-s.back
			for n := 0; n < 3 && !ended(); n++ {
				if err := s.c.Recv(); err != nil {
					s.c.Done()
					return
				}
				count()
				s.c.Done()
			}
			s.again()
		}
	})
	for range 3 {
		all.Go(func() {
			for n := 0; !ended(); n++ {
				if !s.c.AcquireRole() {
					runtime.Gosched()
					continue
				}
				s.c.Announce()
				interrupted, err := s.c.RecvTaken()
				if err != nil && !ended() { // when all has come, the connection is closed
					t.Error(err)
				}
				if !interrupted {
					count()
					s.c.Done()
				}
				s.c.ReleaseRole(n%2 == 0, false)
			}
		})
	}
	all.Go(func() {
		for !ended() {
			s.c.Interrupt()
			runtime.Gosched()
		}
	})
	b := make([]byte, 1000)
	for sum < size {
		for i := range b {
			b[i] = byte(sum)
			sum++
		}
		sendAll(t, s.peer, b)
	}
	for ctx := testrig.Within(t); !ended(); runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes of %d", got, size)
		}
	}
	_ = s.c.Close()
	all.Wait()
}
