package quantile

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
