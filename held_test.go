package iwarp

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// A heldRig is a bound for what peers have us hold, and hears whose connection ends for it.
type heldRig struct {
	*testing.T
	ledger heldLedger
	ended  chan string
}

func newHeldRig(t *testing.T, limit int64) *heldRig {
	return &heldRig{T: t, ledger: heldLedger{limit: limit}, ended: make(chan string, 10)}
}

// peer is a connection, which has a name, with a peer at an address.
func (r *heldRig) peer(name, address string) engine.Budget {
	r.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		r.Fatal(err)
	}
	return r.ledger.share(at, func(why error) {
		if !errors.Is(why, ErrLimit) {
			r.Errorf("%s ended for %v", name, why)
		}
		r.ended <- name
	})
}

func (r *heldRig) takes(b engine.Budget, octets int) {
	r.Helper()
	if err := b.Take(octets); err != nil {
		r.Errorf("%d octets: %v", octets, err)
	}
}

func (r *heldRig) refuses(b engine.Budget, octets int) {
	r.Helper()
	if err := b.Take(octets); !errors.Is(err, ErrLimit) {
		r.Errorf("%d octets: %v", octets, err)
	}
}

func (r *heldRig) wantEnded(names ...string) {
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

// TestHeldShares: many connections from one address, each with little, do not push out the one of another address that has
// more than each of them; of theirs the largest goes.
func TestHeldShares(t *testing.T) {
	r := newHeldRig(t, 1000)
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
	r.takes(c, 110) // to the octet
	r.refuses(modest, 1)
	r.wantEnded()
	a.Give(190)
	r.takes(modest, 190)
	r.wantEnded()
}

// TestHeldByEqual: whoever takes is counted with what it takes; where another has as much, it is who takes that gets nothing.
func TestHeldByEqual(t *testing.T) {
	r := newHeldRig(t, 1000)
	a, b := r.peer("a", "10.0.0.1:1"), r.peer("b", "10.0.0.1:2")
	r.takes(a, 450)
	r.takes(b, 510)
	r.refuses(a, 61)
	r.refuses(a, 60) // as much as b has
	r.wantEnded()

	r = newHeldRig(t, 1000)
	a, b = r.peer("a", "10.0.0.1:1"), r.peer("b", "10.0.0.2:1")
	c := r.peer("c", "10.0.0.1:2")
	r.takes(a, 240)
	r.takes(c, 240)
	r.takes(b, 510)
	r.refuses(c, 31)
	r.refuses(c, 30) // with which its source has as much as that of b
	r.wantEnded()
}

// TestHeldTooMuch: more than all may hold ends nobody else's connection, but those that have more; and nothing is kept of
// those that hold nothing.
func TestHeldTooMuch(t *testing.T) {
	r := newHeldRig(t, 1000)
	a, b := r.peer("a", "[2001:db8::1]:1"), r.peer("b", "[2001:db8:0:1::1]:1")
	r.takes(a, 1000)
	r.refuses(b, 1001)
	r.wantEnded()
	r.takes(b, 999)
	r.wantEnded("a")
	r.refuses(b, 2)
	b.Give(999)
	if len(r.ledger.sources) != 0 || r.ledger.used != 0 {
		t.Errorf("%d octets of %d sources are left", r.ledger.used, len(r.ledger.sources))
	}
	if b := (&heldLedger{}).share(&net.UnixAddr{}, nil); b != nil {
		t.Error("a share without a bound")
	}
}
