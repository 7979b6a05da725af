// Package quantile computes quantiles: median and quartiles of the values of a measurement.
package quantile

import (
	"math"
	"slices"
)

// Quantile returns the value that a part q of the values, 0 to 1, does not exceed, between
// neighbors in proportion, and NaN of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 == len(s) {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// Median returns the middle of the values, the mean of the two middle ones of an even
// number, and NaN of none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quartiles returns the values that a quarter and three quarters of the values do not
// exceed, and NaN of none.
func Quartiles(values []float64) (lower, upper float64) {
	return Quantile(values, 0.25), Quantile(values, 0.75)
}

// Widest is how far the ends of the 95 % confidence interval of a median of ratios may be apart, as their ratio, if
// another run is to find about the same median.
const Widest = 1.25
