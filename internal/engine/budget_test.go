package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

var errSpent = errors.New("spent")

// A purse is a Budget of so many bytes.
type purse struct{ left int }

func (p *purse) Take(n int) error {
	if n > p.left {
		return errSpent
	}
	p.left -= n
	return nil
}

func (p *purse) Give(n int) { p.left += n }

// TestBudget: what waits for its turn is taken from the Budget, with what notes of it take where the payload is placed,
// and given back to the byte in its turn, and when the connection ends.
func TestBudget(t *testing.T) {
	const all = 3*AheadCost + 118
	p := &purse{all}
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead.Budget = p })
	r := s.region(make([]byte, 500), remoteAll)
	placed := func(at uint64) bool { return s.arrives(at, write(r.STag(), 100*at, numbered(100))) }
	s.arrives(1, send(1, numbered(100)))
	placed(3)
	if p.left != AheadCost || s.Machine.HeldAhead() != 118 {
		t.Errorf("%d bytes are left, %d are held", p.left, s.Machine.HeldAhead())
	}
	s.receive(1, SGE{Region: r, Offset: 0, Length: 100})
	placed(0)
	if p.left != all-AheadCost || s.Machine.HeldAhead() != 0 {
		t.Errorf("after its turn: %d bytes are left, %d are held", p.left, s.Machine.HeldAhead())
	}
	placed(4)
	p.left = AheadCost - 1
	if placed(5) {
		t.Error("taken without a budget")
	}
	s.wantSpent()
	if p.left != 3*AheadCost-1 {
		t.Errorf("in the end %d bytes are left", p.left)
	}
}

// TestHoldsTooMuch: a connection may have to end for what others hold; one that has ended is not bothered.
func TestHoldsTooMuch(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.Machine.HoldsTooMuch(s.clock, errSpent)
	if left := s.Machine.Deadline().Sub(s.clock); left != closeTime {
		t.Errorf("the end may take %v", left)
	}
	s.wantSpent()
	s.Machine.HoldsTooMuch(time.Time{}, errSpent)
	if n := s.Machine.Stats().Ahead.Dropped; n != 1 {
		t.Errorf("%d dropped", n)
	}
}

func (s *sender) wantSpent() {
	s.Helper()
	if f := s.wantCause(rdmap.CodeMPALocalCatastrophic, false); !errors.Is(f, errSpent) {
		s.Errorf("ended with %v", f)
	}
}

// TestShownBudget: what is shown ahead of order takes from the Budget what is held of it, and notes of what is placed.
// It is given back in order, and when the connection ends. What there is no room for is not looked at, and comes in
// order.
func TestShownBudget(t *testing.T) {
	const all = 2*AheadCost + 500
	p := &purse{all}
	s := overAware(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead.Budget = p })
	buf := make([]byte, 4*large)
	r := s.region(buf, remoteAll)
	for i := range 4 {
		s.writes(write(r.STag(), uint64(i*large), numbered(large)))
	}
	s.showFPDU(1)
	if left := all - p.left; left != AheadCost {
		t.Errorf("%d bytes are taken for one that is placed", left)
	}
	from, _ := s.fpdu(2)
	s.show(from, from+100)
	if left := all - p.left; left != AheadCost+s.Machine.shown.missing.Stats().Held || left == AheadCost {
		t.Errorf("%d bytes are taken", left)
	}
	before := p.left
	p.left = 99
	s.show(from+100, from+200)
	if p.left != 99 || s.Machine.Stats().Ahead.Dropped != 1 {
		t.Errorf("%d bytes are left, %d dropped", p.left, s.Machine.Stats().Ahead.Dropped)
	}
	p.left = before
	s.inputTo(len(s.stream))
	if p.left != all || !bytes.Equal(buf[3*large:], numbered(large)) || s.Machine.Stats().RecvFPDUs != 4 {
		t.Errorf("%d bytes are left after all has come, %d FPDUs", p.left, s.Machine.Stats().RecvFPDUs)
	}
	s.writes(write(r.STag(), 0, numbered(large)), write(r.STag(), 0, numbered(large)))
	s.showFPDU(5)
	s.Machine.Failed(s.clock, errSpent)
	if p.left != all {
		t.Errorf("%d bytes are left after the end", p.left)
	}
}

// TestShownBudgetNotes: notes of what is placed may take more than was on the stream. Then all is dropped that was
// shown, and what comes in order is placed.
func TestShownBudgetNotes(t *testing.T) {
	const all, small = 1000, 30
	p := &purse{all}
	s := overAware(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead.Budget = p })
	r := s.region(make([]byte, 1000), remoteAll)
	s.writes(write(r.STag(), 0, numbered(400)))
	for i := range small {
		s.writes(write(r.STag(), uint64(i), numbered(1)))
	}
	s.show(s.begins[1], len(s.stream)) // there is a marker in it
	if p.left != all || s.Machine.ahead.segments() != 0 || s.Machine.Stats().Ahead.Dropped != 1 ||
		s.Machine.Stats().Ahead.Placed < 5 {
		t.Errorf("%d bytes are left, %d notes, %+v", p.left, s.Machine.ahead.segments(), s.Machine.Stats().Ahead)
	}
	s.inputTo(len(s.stream))
	if p.left != all || s.Machine.Stats().RecvFPDUs != 1+small {
		t.Errorf("%d bytes are left, %d FPDUs", p.left, s.Machine.Stats().RecvFPDUs)
	}
}
