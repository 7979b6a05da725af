package tcp

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestRecvRest reads what is there after another goroutine is done with what it has read, and
// keeps others from reading until it is done itself, whether there was something or not.
func TestRecvRest(t *testing.T) {
	a, b := pair(t)
	if b.raw == nil {
		t.Skip("only Recv receives here")
	}
	sendAll(t, a, []byte("first"))
	testrig.Must(t, b.Recv())
	rest := make(chan string)
	go func() {
		ok, err := b.RecvRest()
		if !ok || err != nil {
			t.Error(ok, err)
		}
		rest <- string(b.Unread())
	}()
	sendAll(t, a, []byte("second"))
	arrived(t, b)
	b.Consume(len(b.Unread()), 0)
	b.Done()
	if got := <-rest; got != "second" {
		t.Errorf("read %q", got)
	}
	b.Consume(len(b.Unread()), 0)
	b.Done()

	if ok, err := b.RecvRest(); ok || err != nil {
		t.Errorf("with nothing to read: %t, %v", ok, err)
	}
	sendAll(t, a, []byte("third"))
	arrived(t, b)
	if ok, _ := b.TryRecv(); ok {
		t.Error("read beside who has the receive buffer")
	}
	b.Done()
	if ok, err := b.TryRecv(); !ok || err != nil {
		t.Fatalf("after that: %t, %v", ok, err)
	}
	b.Done()
}

// arrived waits until there is something to be read, and takes none of it.
func arrived(t *testing.T, c *Conn) {
	for ctx := testrig.Within(t); !Waiting(c.Conn); {
		testrig.Must(t, ctx.Err())
	}
}

// TestRecvRestPlain waits for the reader where there is no socket, and has nothing to read.
func TestRecvRestPlain(t *testing.T) {
	a, b := piped(t)
	go sendAll(t, a, []byte("x"))
	testrig.Must(t, b.Recv())
	done := make(chan bool)
	go func() {
		ok, _ := b.RecvRest()
		left := len(b.Unread())
		b.Done()
		done <- ok || left > 0
	}()
	b.Consume(1, 0)
	b.Done()
	if <-done {
		t.Error("something was read")
	}
}

// TestRest gives the large buffer back, but for what is unread, and not from under who receives.
func TestRest(t *testing.T) {
	a, b := pair(t)
	if b.raw == nil {
		t.Skip("only Recv receives here, and waits with little")
	}
	for _, left := range []int{0, 3} {
		sendAll(t, a, []byte("something"))
		arrived(t, b)
		if ok, err := b.TryRecv(); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		b.Rest()
		if b.rx.big == nil {
			t.Error("given back while somebody receives")
		}
		b.Consume(len(b.Unread())-left, 0)
		b.Done()
		if b.Rest(); b.rx.big != nil {
			t.Error("the buffer is still there")
		}
	}
	if got := string(b.Unread()); got != "ing" {
		t.Errorf("%q is unread", got)
	}
	b.Rest()
	a.Close()
}
