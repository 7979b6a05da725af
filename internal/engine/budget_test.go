package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

var errSpent = errors.New("spent")

// A purse is a Budget of so many octets.
type purse struct{ left int }

func (p *purse) Take(octets int) error {
	if octets > p.left {
		return errSpent
	}
	p.left -= octets
	return nil
}

func (p *purse) Give(octets int) { p.left += octets }

// TestBudget: what waits for its turn is taken from the Budget, with what notes of it take where the payload is placed,
// and given back to the octet in its turn, and when the connection ends.
func TestBudget(t *testing.T) {
	const all = 3*AheadCost + 118
	p := &purse{all}
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead.Budget = p })
	r := s.region(make([]byte, 500), remoteAll)
	placed := func(at uint64) bool { return s.arrives(at, write(r.STag(), 100*at, numbered(100))) }
	s.arrives(1, send(1, numbered(100)))
	placed(3)
	if p.left != AheadCost || s.HeldAhead() != 118 {
		t.Errorf("%d octets are left, %d are held", p.left, s.HeldAhead())
	}
	s.receive(1, SGE{r, 0, 100})
	placed(0)
	if p.left != all-AheadCost || s.HeldAhead() != 0 {
		t.Errorf("after its turn: %d octets are left, %d are held", p.left, s.HeldAhead())
	}
	placed(4)
	p.left = AheadCost - 1
	if placed(5) {
		t.Error("taken without a budget")
	}
	s.wantSpent()
	if p.left != 3*AheadCost-1 {
		t.Errorf("in the end %d octets are left", p.left)
	}
}

// TestHoldsTooMuch: a connection may have to end for what others hold; one that has ended is not bothered.
func TestHoldsTooMuch(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.HoldsTooMuch(time.Time{}, errSpent)
	s.wantSpent()
	s.HoldsTooMuch(time.Time{}, errSpent)
	if n := s.Stats().Ahead.Dropped; n != 1 {
		t.Errorf("%d dropped", n)
	}
}

func (s *sender) wantSpent() {
	s.Helper()
	if f := s.wantCause(mpaCode(mpa.CodeLocalCatastrophic), false); !errors.Is(f, errSpent) {
		s.Errorf("ended with %v", f)
	}
}
