package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/internal/quantile"
)

// worst is how much slower the later revision may be, at the worse end of the interval.
const worst = 1.03

// A ratio says how the later revision compares with the earlier one in something of which less is better.
type ratio struct {
	median    float64
	low, high float64 // an interval that has the median of all possible pairs in it, with a confidence of 95 %
	judged    bool    // there are enough pairs for that interval
}

// newRatio takes the ratios of pairs.
func newRatio(pairs []float64) ratio {
	s := slices.Sorted(slices.Values(pairs))
	off, ok := outside(len(s))
	return ratio{quantile.Median(s), s[off], s[len(s)-1-off], ok}
}

// outside returns how many of n values lie outside of the interval on each side. The number of values below the true
// median is binomial, whatever their distribution is: with one value left out on each side of ten, the interval misses
// it in 2.1 % of all cases. Five values or fewer have no interval of 95 %.
func outside(n int) (off int, ok bool) {
	below := math.Pow(0.5, float64(n)) // the chance that off values or fewer are below
	if 2*below > 0.05 {
		return 0, false
	}
	each := below
	for {
		each *= float64(n-off) / float64(off+1)
		if below += each; 2*below > 0.05 {
			return off, true
		}
		off++
	}
}

// holds reports whether the later revision is not slower, as far as can be told.
func (r ratio) holds() bool { return r.low <= 1 && r.high >= 1 || r.high <= worst }

// cells are the ratio in a row of a table.
func (r ratio) cells() []string {
	verdict := "holds"
	switch {
	case !r.judged:
		verdict = "too few pairs"
	case !r.holds():
		verdict = "SLOWER"
	}
	return []string{fmt.Sprintf("%.3f", r.median), fmt.Sprintf("%.3f - %.3f", r.low, r.high), verdict}
}
