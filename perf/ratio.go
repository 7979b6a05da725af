package perf

import (
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/internal/quantile"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Ratios are iWARP's figures divided by plain TCP's: the medians over the pairs of slices
// of the ratio within a pair. A ratio is 0 if plain TCP was not measured, if the system
// does not tell what it is of, or if there was too little of it.
type Ratios struct {
	RatioBW  float64 `json:"ratio_bw,omitempty"`
	RatioLat float64 `json:"ratio_lat,omitempty"` // of the median latency
	// of the latency that 1 % exceed; within as many pairs as have 100 round trips on both sides
	RatioP99    float64 `json:"ratio_p99,omitempty"`
	RatioCPU    float64 `json:"ratio_cpu,omitempty"`     // of the CPU time for a message, of both ends
	RatioCPULat float64 `json:"ratio_cpu_lat,omitempty"` // the same while latency is measured

	// Quartiles are the lower and the upper quartile of each, by its key.
	Quartiles map[string][2]float64 `json:"ratio_quartiles,omitempty"`

	// Inconclusive names the ratios, by their keys, that another run would not repeat, or that
	// fewer than 5 undisturbed pairs are left for: the machine was too busy with other things.
	Inconclusive []string `json:"inconclusive,omitempty"`
}

// Ratio returns the ratio with such a key, and 0 if there is no such key.
func (r *Ratios) Ratio(key string) float64 {
	if to := r.ratio(key); to != nil {
		return *to
	}
	return 0
}

// ratio returns where the ratio with such a key is, or nil.
func (r *Ratios) ratio(key string) *float64 {
	switch key {
	case "ratio_bw":
		return &r.RatioBW
	case "ratio_lat":
		return &r.RatioLat
	case "ratio_p99":
		return &r.RatioP99
	case "ratio_cpu":
		return &r.RatioCPU
	case "ratio_cpu_lat":
		return &r.RatioCPULat
	}
	return nil
}

// Repeats reports whether another run would find about the same ratio with such a key, as far as is known: it is not
// inconclusive.
func (r *Ratios) Repeats(key string) bool { return !slices.Contains(r.Inconclusive, key) }

// Text prints the ratio with such a key and its quartiles in a format of three numbers. It begins with "~" if the ratio
// is inconclusive, and is "-" where there is none.
func (r *Ratios) Text(key, format string) string {
	ratio, q := r.Ratio(key), r.Quartiles[key]
	if ratio == 0 {
		return "-"
	}
	return wording.If(r.Repeats(key), "", "~") + fmt.Sprintf(format, ratio, q[0], q[1])
}

// ratios compares the undisturbed pairs, and for CPU time all of them: a thread that waits
// for a CPU takes none.
func ratios(bw, lat series) Ratios {
	var r Ratios
	bwKept, latKept := bw.kept(), lat.kept()
	r.compare("ratio_bw", bwKept, sample.rate)
	r.compare("ratio_lat", latKept, sample.typical)
	r.compare("ratio_p99", latKept.grouped(), sample.late)
	r.compare("ratio_cpu", bw, sample.cpu)
	r.compare("ratio_cpu_lat", lat, sample.cpu)
	return r
}

// compare notes one ratio with its quartiles.
func (r *Ratios) compare(key string, s series, value func(sample) float64) {
	var all []float64
	for i := range min(len(s.iwarp), len(s.tcp)) {
		x := value(s.iwarp[i]) / value(s.tcp[i])
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return
		}
		all = append(all, x)
	}
	if len(all) == 0 {
		return
	}
	if r.Quartiles == nil {
		r.Quartiles = make(map[string][2]float64)
	}
	lower, upper := quantile.Quartiles(all)
	r.Quartiles[key] = [2]float64{lower, upper}
	if !s.keep && (s.scarce || !repeatable(all)) {
		r.Inconclusive = append(r.Inconclusive, key)
	}
	*r.ratio(key) = quantile.Median(all)
}

// judgedFrom is from how many wanted pairs on a verdict is given: fewer are asked for
// by those who do not want to wait. See Options.Judged.
const judgedFrom = 20

// repeatable reports whether another run would find about the same median: the 95 %
// confidence interval of it is narrow. The fewer pairs are left, the wider that is.
func repeatable(pairs []float64) bool {
	low, high := confidence(pairs)
	return high <= low*quantile.Widest
}

// confidence returns the bounds of the median with a confidence of 95 %: the number of
// values below the median is binomial, with a standard deviation of half the root of n.
func confidence(all []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(all))
	n := float64(len(s))
	off := 0.98 * math.Sqrt(n)
	first := max(0, int(math.Floor(n/2-off)))
	return s[first], s[len(s)-1-first]
}

// Pairs counts pairs of slices, or slices if plain TCP is not measured.
type Pairs struct {
	BWPairs    int `json:"pairs_bw"`
	LatPairs   int `json:"pairs_lat"`
	BWDropped  int `json:"dropped_bw"` // those that the rest of the machine disturbed
	LatDropped int `json:"dropped_lat"`

	// ScarceOf lists the quantities for which Scarce holds.
	ScarceOf []Quantity `json:"scarce,omitempty"`
}

// Scarce reports whether a quantity has too few pairs that were not disturbed: its figures are then of the 5 that
// waited least, and its ratios inconclusive.
func (p Pairs) Scarce(q Quantity) bool {
	all, dropped := p.BWPairs, p.BWDropped
	if q == Latency {
		all, dropped = p.LatPairs, p.LatDropped
	}
	return dropped > 0 && all-dropped < minPairs
}

// Judged reports whether there were as many pairs of both quantities as Options.Judged wants. There are fewer over a path
// with a long round trip, where disturbed ones are kept, and where time ran out.
func (p Pairs) Judged() bool { return min(p.BWPairs, p.LatPairs) >= judgedFrom }

func countPairs(bw, lat series) Pairs {
	p := Pairs{BWPairs: len(bw.iwarp), LatPairs: len(lat.iwarp), BWDropped: bw.disturbed(), LatDropped: lat.disturbed()}
	for _, q := range []Quantity{Bandwidth, Latency} {
		if p.Scarce(q) {
			p.ScarceOf = append(p.ScarceOf, q)
		}
	}
	return p
}
