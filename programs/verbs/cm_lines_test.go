//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestLines: connections to one peer begin in order, each when the one before it has its answer, or after a while; others wait for nobody.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		peer, other := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.1:2")
		ctx, gone := context.WithCancel(t.Context())
		begun := make(chan string, 9)
		join := func(ctx context.Context, name string, peer netip.AddrPort) (leave func()) {
			before, leave := l.join(peer)
			go func() {
				(&ID{ctx: ctx}).await(before)
				begun <- name
			}()
			return leave
		}
		has := func(want ...string) {
			t.Helper()
			synctest.Wait()
			for _, name := range want {
				if len(begun) == 0 {
					t.Fatalf("%s has not begun", name)
				}
				if got := <-begun; got != name {
					t.Fatalf("%s has begun, in place of %s", got, name)
				}
			}
			if len(begun) != 0 {
				t.Fatalf("%s has begun too", <-begun)
			}
		}
		first := join(t.Context(), "first", peer)
		has("first")
		second := join(t.Context(), "second", peer)
		has()
		third := join(t.Context(), "third", peer)
		apart := join(t.Context(), "apart", other)
		has("apart")
		first()
		has("second")
		time.Sleep(turn - 1)
		has()
		time.Sleep(time.Nanosecond) // the second has no answer yet
		has("third")
		fourth := join(ctx, "fourth", peer)
		has()
		gone()
		has("fourth")
		for _, leave := range []func(){second, third, apart, fourth} {
			leave()
		}
		if len(l.last) != 0 {
			t.Errorf("%d lines are left", len(l.last))
		}
		join(t.Context(), "fifth", peer)()
		has("fifth")
	})
}

// TestInOrder has connections that are begun together come to a listener that answers at once, and counts what came. In which order they come is
// TestLines's: here a machine that stops for a while may have one begin without its turn.
func TestInOrder(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	_, at := s.listen(1)
	const n = 8
	for token := range uint64(n) {
		must(t, c.d.Connect(c.resolve(token, at), c.queue().qp, ConnParam{}))
	}
	for range n {
		request := s.event(ConnectRequest)
		must(t, s.d.Reject(request.Child, nil))
		must(t, s.d.DestroyID(request.Child))
	}
	came := map[uint64]bool{}
	for range n {
		came[c.event(Rejected).Token] = true
	}
	want(t, "connections", len(came), n)
}
