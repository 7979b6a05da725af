package tcp

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestInterrupt ends what a consumer waits for: before it reads, while it reads, or when there
// are bytes already, which are not lost.
func TestInterrupt(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.Interrupt() // nobody is going to read
	s.write("a")
	s.wantRead("a")

	s.c.Announce()
	s.c.Interrupt()
	s.c.Interrupt()
	s.wantInterrupted()

	for range 100 { // before it, in it, or after it
		s.c.Announce()
		var done sync.WaitGroup
		done.Go(s.c.Interrupt)
		s.wantInterrupted()
		done.Wait()
		s.write("b")
		s.wantRead("b")
	}
	s.c.Announce()
	s.c.Interrupt()
	s.c.ReleaseRole(false, false) // without reading
	s.write("c")
	s.wantBack(1)
	if got := recv(t, s.c, 1, 0); string(got) != "c" {
		t.Errorf("received %q", got)
	}
}

// TestWithheld has a consumer leave the role to the receiving goroutine alone, which has it
// when something comes.
func TestWithheld(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.ReleaseRole(true, false)
	if s.c.AcquireRole() {
		t.Error("taken")
	}
	s.wantAway()
	s.write("x")
	s.wantBack(1)
	recv(t, s.c, 1, 0)
	s.again()
	s.acquire()
}

// TestInterruptTooLate: an interrupt after a consumer has received is none for who receives next.
func TestInterruptTooLate(t *testing.T) {
	c, peer := pair(t)
	c.Announce()
	sendAll(t, peer, []byte("x"))
	interrupted, err := c.RecvTaken()
	if testrig.Must(t, err); interrupted {
		t.Fatal("interrupted by nobody")
	}
	c.Consume(1, 0)
	c.Done()
	c.Interrupt()
	sendAll(t, peer, []byte("y"))
	testrig.Must(t, c.Recv())
	if got := string(c.Unread()); got != "y" {
		t.Errorf("%q", got)
	}
	c.Done()
}

// TestInterruptWith has contexts interrupt: the one watched last, and it for as long as it is the same.
func TestInterruptWith(t *testing.T) {
	s := standBack(t)
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	defer endFirst()
	lead := func(ctx context.Context) {
		s.acquire()
		s.c.InterruptWith(ctx)
		s.c.Announce()
	}
	lead(first)
	endFirst()
	s.wantInterrupted()
	s.c.ReleaseRole(false, false)
	for range 3 {
		lead(second)
		s.c.ReleaseRole(false, false)
	}
	lead(context.Background())
	endSecond()
	s.wantInterrupted()
	s.c.ReleaseRole(false, false)
	s.c.End()
	s.wantBack(-1)
}

// TestInterruptWithOnce: a context that ends after its consumer has left interrupts nobody, and costs
// nothing when it was watched again and again.
func TestInterruptWithOnce(t *testing.T) {
	s := standBack(t)
	ctx, end := context.WithCancel(t.Context())
	s.acquire()
	s.c.InterruptWith(ctx)
	s.c.ReleaseRole(false, false)
	end()
	s.acquire()
	s.write("x")
	s.wantRead("x")
	again, end := context.WithCancel(t.Context())
	defer end()
	turn := func() {
		s.c.InterruptWith(again)
		s.c.ReleaseRole(false, false)
		for !s.c.AcquireRole() {
			runtime.Gosched()
		}
	}
	turn()
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
	s.c.End()
}
