package usertcp

import (
	"context"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

var must = testrig.Must

// stacks returns two stacks that are joined, and closes them at the end of the test.
func stacks(t testing.TB, cfg Config, ab, ba Path) (a, b *Stack) {
	t.Helper()
	a, b, err := Pair(cfg, ab, ba)
	must(t, err)
	t.Cleanup(func() {
		must(t, a.Close())
		must(t, b.Close())
	})
	return a, b
}

// connection returns both ends of a connection, the one that dialed first.
func connection(t testing.TB, cfg Config, ab, ba Path) (c, s *Conn) {
	t.Helper()
	a, b := stacks(t, cfg, ab, ba)
	return connect(t, a, b, "192.0.2.2:7174")
}

// connect connects two stacks.
func connect(t testing.TB, a, b *Stack, address string) (c, s *Conn) {
	t.Helper()
	l, err := b.Listen(context.Background(), "tcp", address)
	must(t, err)
	defer l.Close()
	return dialed(t, a, l)
}

// dialed dials a Listener of another stack.
func dialed(t testing.TB, a *Stack, l net.Listener) (c, s *Conn) {
	t.Helper()
	got := make(chan *Conn, 1)
	go func() {
		defer close(got)
		if in, err := l.Accept(); err != nil {
			t.Error(err)
		} else {
			got <- in.(*Conn)
		}
	}()
	out, err := a.DialContext(context.Background(), "tcp", l.Addr().String())
	must(t, err)
	in, ok := <-got
	if !ok {
		t.Fatal("nothing accepted")
	}
	return out.(*Conn), in
}
