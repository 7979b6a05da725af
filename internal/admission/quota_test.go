package admission

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// An overError says which limit was exceeded.
type overError struct{ limit, used, wanted int64 }

func (e overError) Error() string {
	return fmt.Sprintf("%d and %d more of %d", e.used, e.wanted, e.limit)
}

func over(limit, used, wanted int64) error { return overError{limit, used, wanted} }

// A quotaRig is a bound for what peers have us hold, and hears whose connection ends for it.
type quotaRig struct {
	*testing.T
	quota *Quota
	ended chan string
}

func newQuotaRig(t *testing.T, limit int64) *quotaRig {
	return &quotaRig{T: t, quota: NewQuota(limit, over), ended: make(chan string, 10)}
}

// peer is a connection, which has a name, with a peer at an address.
func (r *quotaRig) peer(name, address string) engine.Budget {
	r.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		r.Fatal(err)
	}
	return r.quota.Share(at, func(why error) {
		if !errors.As(why, new(overError)) {
			r.Errorf("%s ended for %v", name, why)
		}
		r.ended <- name
	})
}

func (r *quotaRig) takes(b engine.Budget, bytes int) {
	r.Helper()
	if err := b.Take(bytes); err != nil {
		r.Errorf("%d bytes: %v", bytes, err)
	}
}

func (r *quotaRig) refuses(b engine.Budget, bytes int) {
	r.Helper()
	if err := b.Take(bytes); !errors.As(err, new(overError)) {
		r.Errorf("%d bytes: %v", bytes, err)
	}
}

func (r *quotaRig) wantEnded(names ...string) {
	r.Helper()
	for _, want := range names {
		select {
		case got := <-r.ended:
			if got != want {
				r.Errorf("%s has ended, want %s", got, want)
			}
		case <-time.After(time.Minute):
			r.Fatalf("%s goes on", want)
		}
	}
	if len(r.ended) > 0 {
		r.Errorf("%s has ended, too", <-r.ended)
	}
}

// TestQuotaShares: many connections from one address, each with little, do not push out the one of another address that
// has more than each of them; of theirs the largest goes.
func TestQuotaShares(t *testing.T) {
	r := newQuotaRig(t, 1000)
	modest := r.peer("modest", "10.0.0.1:1")
	a, b, c := r.peer("a", "10.0.0.2:1"), r.peer("b", "10.0.0.2:2"), r.peer("c", "10.0.0.2:3")
	r.takes(modest, 400)
	r.takes(a, 190)
	r.takes(b, 210)
	r.takes(c, 200)
	r.wantEnded()
	r.takes(modest, 100)
	r.wantEnded("b")
	b.Give(210) // when it has ended
	r.refuses(b, 1)
	r.takes(c, 110) // exactly
	r.refuses(modest, 1)
	r.wantEnded()
	a.Give(190)
	r.takes(modest, 190)
	r.wantEnded()
}

// TestQuotaByEqual: whoever takes is counted with what it takes; where another has as much, it is who takes that gets
// nothing.
func TestQuotaByEqual(t *testing.T) {
	r := newQuotaRig(t, 1000)
	a, b := r.peer("a", "10.0.0.1:1"), r.peer("b", "10.0.0.1:2")
	r.takes(a, 450)
	r.takes(b, 510)
	r.refuses(a, 61)
	r.refuses(a, 60) // as much as b has
	r.wantEnded()

	r = newQuotaRig(t, 1000)
	a, b = r.peer("a", "10.0.0.1:1"), r.peer("b", "10.0.0.2:1")
	c := r.peer("c", "10.0.0.1:2")
	r.takes(a, 240)
	r.takes(c, 240)
	r.takes(b, 510)
	r.refuses(c, 31)
	r.refuses(c, 30) // with which its source has as much as that of b
	r.wantEnded()
}

// TestQuotaTooMuch: more than all may hold ends nobody else's connection, but those that have more; and nothing is kept
// of those that hold nothing.
func TestQuotaTooMuch(t *testing.T) {
	r := newQuotaRig(t, 1000)
	a, b := r.peer("a", "[2001:db8::1]:1"), r.peer("b", "[2001:db8:0:1::1]:1")
	r.takes(a, 1000)
	r.refuses(b, 1001)
	r.wantEnded()
	r.takes(b, 999)
	r.wantEnded("a")
	r.refuses(b, 2)
	b.Give(999)
	if len(r.quota.sources) != 0 || r.quota.used != 0 {
		t.Errorf("%d bytes of %d sources are left", r.quota.used, len(r.quota.sources))
	}
	if b := NewQuota(0, over).Share(&net.UnixAddr{}, nil); b != nil {
		t.Error("a share without a bound")
	}
}

// TestQuotaSources: peers without an IP address are told apart by their texts, and all that have no address are one
// source. A connection that holds nothing any more is not kept while others of its source hold something. Nothing is
// kept of one that takes nothing.
func TestQuotaSources(t *testing.T) {
	q := NewQuota(1000, over)
	one, two := q.Share(&net.UnixAddr{Name: "one"}, nil), q.Share(&net.UnixAddr{Name: "two"}, nil)
	nobody := []engine.Budget{q.Share(nil, nil), q.Share(nil, nil)}
	for _, b := range append(nobody, one, two) {
		if err := b.Take(10); err != nil {
			t.Error(err)
		}
	}
	if len(q.sources) != 3 || len(q.sources[""].shares) != 2 {
		t.Errorf("%d sources", len(q.sources))
	}
	nobody[0].Give(10)
	if n := len(q.sources[""].shares); n != 1 {
		t.Errorf("%d connections are kept where one holds something", n)
	}
	none := q.Share(&net.UnixAddr{Name: "none"}, nil)
	if err := none.Take(0); err != nil || len(q.sources) != 3 || len(q.queue) != 3 {
		t.Errorf("%d sources, %d in the queue, after one has taken nothing: %v", len(q.sources), len(q.queue), err)
	}
	none.Give(0)
}

// TestQuotaFits: what fits exactly takes nothing from others, and does not count twice.
func TestQuotaFits(t *testing.T) {
	r := newQuotaRig(t, 1000)
	a, b := r.peer("a", "10.0.0.1:1"), r.peer("b", "10.0.0.2:1")
	r.takes(a, 600)
	r.takes(b, 400)
	if r.quota.used != 1000 {
		t.Errorf("%d bytes are held", r.quota.used)
	}
	b.Give(400)
	r.takes(b, 500) // for which a ends, and that is enough
	r.wantEnded("a")
	r.takes(b, 500)
	r.wantEnded()
}
