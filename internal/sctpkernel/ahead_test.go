package sctpkernel

import "testing"

// TestAhead: what a peer can have come ahead of a missing message is as much as the kernel takes, and no more than
// packets of a network make of that where the path is told to take larger ones.
func TestAhead(t *testing.T) {
	for largest, want := range map[int]int{1452: 4096 * 1452, 8952: 4096 * 8952, 65484: 36 << 20} {
		if got := (&Conn{largest: largest}).Ahead(); got != want {
			t.Errorf("messages of %d bytes: %d bytes, want %d", largest, got, want)
		}
	}
}
