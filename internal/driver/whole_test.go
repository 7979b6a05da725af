package driver

import (
	"slices"
	"testing"
)

// TestCloseAfterCloseWrite: a stream's half is ended once, and before the stream is closed: the goroutine that ends it
// may be late.
func TestCloseAfterCloseWrite(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := newSegments()
		var calls []string
		s.each = func(call string) { calls = append(calls, call) }
		l := wholeLink{Stream: s}
		if !late {
			_ = l.CloseWrite()
		}
		_ = l.Close()
		_ = l.CloseWrite()
		if !slices.Equal(calls, []string{"CloseWrite", "Close"}) {
			t.Errorf("late: %t: calls of %v", late, calls)
		}
	}
}

// TestMovedOnce: what a path has moved counts once, also where who has asked first is the last to tell.
func TestMovedOnce(t *testing.T) {
	var l wholeLink
	for _, c := range []struct{ told, more uint64 }{{10, 10}, {10, 0}, {7, 0}, {12, 2}} {
		if more := l.noteMoved(c.told); more != c.more {
			t.Errorf("told of %d: %d more, want %d", c.told, more, c.more)
		}
	}
}
