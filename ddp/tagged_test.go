package ddp

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Proves D40: outside the STag's range is 0x1101, beyond 2^64 is 0x1103.
// Proves D23: TO is not looked at where there is no payload.
func TestCheckBounds(t *testing.T) {
	const top = math.MaxUint64
	for _, tt := range []struct {
		name         string
		to           uint64
		n            uint64
		base, length uint64
		code         Code // 0: taken
	}{
		{"all of it", 1000, 100, 1000, 100, 0},
		{"its first byte", 1000, 1, 1000, 100, 0},
		{"its last byte", 1099, 1, 1000, 100, 0},
		{"one byte before", 999, 1, 1000, 100, CodeBaseOrBounds},
		{"from one byte before", 999, 2, 1000, 100, CodeBaseOrBounds},
		{"one byte after", 1100, 1, 1000, 100, CodeBaseOrBounds},
		{"to one byte after", 1099, 2, 1000, 100, CodeBaseOrBounds},
		{"one byte too many", 1000, 101, 1000, 100, CodeBaseOrBounds},
		{"far after", top - 1, 1, 1000, 100, CodeBaseOrBounds},
		{"empty buffer", 1000, 1, 1000, 0, CodeBaseOrBounds},
		{"near the top", top - 10, 10, top - 10, 10, 0},
		{"sum is 2^64", top, 1, 0, top, CodeTOWrap},
		{"sum is 2^64 and one", top, 2, 0, top, CodeTOWrap},
		{"wraps into the buffer", top - 9, 20, 0, 100, CodeTOWrap},
		{"nothing, before", 0, 0, 1000, 100, 0},
		{"nothing, after", top, 0, 1000, 100, 0},
		{"nothing, no buffer", 5, 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CheckBounds(tt.to, tt.n, tt.base, tt.length); got != tt.code {
				t.Errorf("got %v, want %v", got, tt.code)
			}
		})
	}
}

// The same with integers that do not overflow.
//
// Proves D40: for any TO, length, base and bounds.
func TestCheckBoundsAny(t *testing.T) {
	edge := rapid.OneOf(rapid.Uint64(), rapid.Uint64Max(40), rapid.Uint64Min(math.MaxUint64-40))
	rapid.Check(t, func(t *rapid.T) {
		to, base, length := edge.Draw(t, "TO"), edge.Draw(t, "base"), edge.Draw(t, "length")
		n := rapid.Uint64Range(1, 60).Draw(t, "n")
		var code Code
		end := new(big.Int).Add(number(to), number(n))
		switch {
		case end.Cmp(number(math.MaxUint64)) > 0:
			code = CodeTOWrap
		case to < base || end.Cmp(new(big.Int).Add(number(base), number(length))) > 0:
			code = CodeBaseOrBounds
		}
		if got := CheckBounds(to, n, base, length); got != code {
			t.Fatalf("%d bytes at %#x in %#x+%#x: got %v, want %v", n, to, base, length, got, code)
		}
	})
}

func number(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

// TestWraps: the end of a buffer is the sum, and one of no bytes has one wherever it is.
func TestWraps(t *testing.T) {
	const top = math.MaxUint64
	for _, tt := range []struct {
		to, length uint64
		wraps      bool
	}{{0, 0, false}, {5, 0, false}, {top, 0, false}, {top - 1, 1, false}, {top, 1, true},
		{top, top, true}, {1, top, true}} {
		if got := Wraps(tt.to, tt.length); got != tt.wraps {
			t.Errorf("%d bytes at %#x: %t", tt.length, tt.to, got)
		}
	}
}
