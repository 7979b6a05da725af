package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestCompare has a benchmark of a microsecond, today of two: the order of the runs is the same forth and back, and
// all are as long.
func TestCompare(t *testing.T) {
	var order []string
	var lengths []int
	bench := func(name string, each time.Duration) run {
		return func(times int) (time.Duration, error) {
			if each*time.Duration(times) >= longEnough {
				order, lengths = append(order, name), append(lengths, times)
			}
			return each * time.Duration(times), nil
		}
	}
	r, err := compare(2, bench("then", time.Microsecond), bench("now", 2*time.Microsecond))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"2.00", "2.00 - 2.00", "1.00", "1.00 - 1.00"}; !slices.Equal(r.cells(), want) {
		t.Errorf("%q, want %q", r.cells(), want)
	}
	// The first one is that which was long enough.
	if want := []string{"then", "then", "now", "now", "then", "then", "now", "now",
		"then"}; !slices.Equal(order, want) {
		t.Errorf("run in the order %q, want %q", order, want)
	}
	if slices.Min(lengths) != slices.Max(lengths) {
		t.Errorf("of different lengths: %v", lengths)
	}
}

// TestCompareNothing has no benchmark of that name, and one that fails.
func TestCompareNothing(t *testing.T) {
	none := func(int) (time.Duration, error) { return time.Millisecond, nil }
	if _, err := compare(1, none, none); !errors.Is(err, errTooShort) {
		t.Errorf("nothing to run: %v", err)
	}
	broken := errors.New("broken")
	fails := func(int) (time.Duration, error) { return 0, broken }
	if _, err := compare(1, fails, none); !errors.Is(err, broken) {
		t.Errorf("then: %v", err)
	}
	long := func(int) (time.Duration, error) { return longEnough, nil }
	if _, err := compare(1, long, fails); !errors.Is(err, broken) {
		t.Errorf("now: %v", err)
	}
}
