package spread

import (
	"math"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values               []float64
		lower, median, upper float64
	}{
		{[]float64{7}, 7, 7, 7},
		{[]float64{2, 1}, 1.25, 1.5, 1.75},
		{[]float64{5, 1, 3}, 2, 3, 4},
		{[]float64{4, 1, 3, 2, 5}, 2, 3, 4},
	} {
		lower, upper := Quartiles(test.values)
		if median := Median(test.values); lower != test.lower || median != test.median || upper != test.upper {
			t.Errorf("%v: got %v, %v, %v", test.values, lower, median, upper)
		}
	}
	if lower, upper := Quartiles(nil); !math.IsNaN(lower) || !math.IsNaN(upper) || !math.IsNaN(Median(nil)) {
		t.Error("no values have quartiles")
	}
}

// TestApart: of figures whose quartiles are as far apart as that allows, the interval of the median is as wide as it may be. The
// more there are, the further apart the quartiles may be.
func TestApart(t *testing.T) {
	for n, want := range map[int]float64{1: 1.063, 5: 1.147, 7: 1.176, 13: 1.247, 15: 1.268, 24: 1.350, 100: 1.846} {
		if got := Apart(n); math.Abs(got-want) > 0.001 {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
}
