package perf

import "github.com/goiwarp/iwarp/internal/quantile"

const (
	// LateTrips is how many round trips have a 99th percentile of their own, which one of a hundred exceeds: that of
	// fewer is the greatest of them, and of how few they are says more than of the latency.
	LateTrips = 100

	// leastLate and leastLatest are how many round trips there are to be in all, for the latency that 1 % exceed and
	// for that which 0.1 % do. Three of so many exceed it: the place of a single one does not decide.
	leastLate   = 300
	leastLatest = 3000
)

// trips is how many round trips the sample has.
func (x sample) trips() float64 {
	if x.rtt == nil {
		return 0
	}
	return float64(x.rtt.TotalCount())
}

// trips is how many all samples have.
func trips(samples []sample) (sum float64) {
	for _, x := range samples {
		sum += x.trips()
	}
	return sum
}

// lateInSlices reports whether slices have a 99th percentile of their own: on both sides half of them have round trips
// enough. The number of a slice's follows how long the slice before took, so that a few have less.
func (s *series) lateInSlices() bool {
	for _, samples := range [][]sample{s.iwarp, s.tcp} {
		if len(samples) > 0 && quantile.Median(values(samples, sample.trips)) < LateTrips {
			return false
		}
	}
	return true
}

// grouped returns the series with pairs put together, in order of rounds, as many as it takes for a 99th percentile on
// both sides. A pair that has round trips enough stays by itself. If there are too few in all, on either side, no pair
// is left.
func (s *series) grouped() series {
	g := *s
	g.iwarp, g.tcp = nil, nil
	if min(trips(s.iwarp), trips(s.tcp)) < leastLate {
		return g
	}
	enough := func(from, to int) bool { return min(trips(s.iwarp[from:to]), trips(s.tcp[from:to])) >= LateTrips }
	from, n := 0, min(len(s.iwarp), len(s.tcp))
	for to := 1; to <= n; to++ {
		if to == n || enough(from, to) && enough(to, n) {
			g.iwarp, g.tcp = append(g.iwarp, total(s.iwarp[from:to])), append(g.tcp, total(s.tcp[from:to]))
			from = to
		}
	}
	return g
}
