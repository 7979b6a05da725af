package sctp

import "testing"

// TestAccountWithoutGap: numbers that have arrived ahead take memory as long as there is a gap, in whatever order
// it is filled, and none after that.
func TestAccountWithoutGap(t *testing.T) {
	var a account
	for round := range uint16(3) {
		for _, ssn := range []uint16{2, 4, 1, 3} {
			if _, ok := a.enter(5*round + ssn); !ok || a.seen == nil {
				t.Fatalf("%d: taken %t, with an account of the gap: %t", 5*round+ssn, ok, a.seen != nil)
			}
		}
		if number, ok := a.enter(5 * round); !ok || number != uint64(5*round) || a.seen != nil || a.ahead != 0 {
			t.Fatalf("%d, %t: %d are ahead, with an account: %t", number, ok, a.ahead, a.seen != nil)
		}
	}
}
