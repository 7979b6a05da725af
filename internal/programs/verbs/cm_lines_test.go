//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestLines: connections to one peer begin in order: each when the one before it has its answer, or TCP has made it a
// while ago, however long that took, or it has tried for long. Others wait for nobody, and one that is given up lets
// nobody pass.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		peer, other := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.1:2")
		ctx, gone := context.WithCancel(t.Context())
		begun := make(chan string, 9)
		join := func(ctx context.Context, name string, peer netip.AddrPort) *place {
			p := l.join(peer)
			go func() {
				p.await(ctx)
				if ctx.Err() == nil {
					begun <- name
				}
			}()
			return p
		}
		has := func(names ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(begun) > 0 {
				got = append(got, <-begun)
			}
			want(t, "those that have begun", fmt.Sprint(got), fmt.Sprint(names))
		}
		first := join(t.Context(), "first", peer)
		has("first")
		second := join(t.Context(), "second", peer)
		has()
		third := join(t.Context(), "third", peer)
		apart := join(t.Context(), "apart", other)
		has("apart")
		first.done()
		has("second")
		time.Sleep(turnLimit - 1) // a long way
		has()
		_, err := second.connecting(nil)(nil)
		want(t, "error", err, nil)
		time.Sleep(turn - 1)
		has()
		fourth := join(ctx, "fourth", peer)
		fifth := join(t.Context(), "fifth", peer)
		time.Sleep(time.Nanosecond) // the second has no answer yet
		has("third")
		gone()
		has()
		fourth.done()
		has()
		time.Sleep(turnLimit - 1)
		has()
		time.Sleep(time.Nanosecond) // TCP has not made the third yet
		has("fifth")
		for _, p := range []*place{second, third, apart, fifth} {
			p.done()
		}
		if len(l.last) != 0 {
			t.Errorf("%d lines are left", len(l.last))
		}
		sixth := join(t.Context(), "sixth", peer)
		has("sixth")
		sixth.done()
	})
}

// TestInOrder has connections that are begun together come to a listener that answers at once, and counts what came. In
// which order they come is TestLines's: here a machine that stops for a while may have one begin without its turn.
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
