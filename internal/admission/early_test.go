package admission

import "testing"

// TestEarlyQuota: the bound is exact, and what is refused changes nothing.
func TestEarlyQuota(t *testing.T) {
	q := NewEarlyQuota(100, over)
	for _, n := range []int{60, 40} {
		if err := q.Take(n); err != nil {
			t.Error(err)
		}
	}
	if err := q.Take(1); err != (overError{100, 100, 1}) {
		t.Errorf("one more: %v", err)
	}
	q.Give(1)
	if err := q.Take(1); err != nil {
		t.Error(err)
	}
	if b := NewEarlyQuota(0, over).Budget(); b != nil {
		t.Errorf("a budget without a bound: %v", b)
	}
}
