package iwarp

import (
	"errors"
	"testing"
)

// TestShownLedger: the bound is to the octet, and what is refused changes nothing.
func TestShownLedger(t *testing.T) {
	l := shownLedger{limit: 100}
	for _, n := range []int{60, 40} {
		if err := l.Take(n); err != nil {
			t.Error(err)
		}
	}
	var limit *LimitError
	if err := l.Take(1); !errors.As(err, &limit) || limit.Limit != 100 || limit.Used != 100 || limit.Wanted != 1 {
		t.Errorf("one more: %v", err)
	}
	l.Give(1)
	if err := l.Take(1); err != nil {
		t.Error(err)
	}
	if b := new(shownLedger).budget(); b != nil {
		t.Errorf("a budget without a bound: %v", b)
	}
}
