package decode

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

const (
	distributionParts = 8  // into which a Distribution divides each power of two
	maxExact          = 64 // values that it counts one by one
)

// A Distribution counts values by size. Its percentiles are exact up to 64 different values;
// of more they are rounded up, by at most an eighth.
type Distribution struct {
	Count    uint64
	Min, Max uint64
	Sum      uint64

	buckets []uint64
	exact   []counted // each value, in order, while there are few
	last    int       // index in it of the value that came last
}

// A counted is how often there was a value.
type counted struct{ value, count uint64 }

// Add counts a value.
func (d *Distribution) Add(v uint64) {
	if d.Count == 0 || v < d.Min {
		d.Min = v
	}
	d.Max = max(d.Max, v)
	d.Count++
	d.Sum += v
	i := bucketOf(v)
	if i >= len(d.buckets) {
		d.buckets = append(d.buckets, make([]uint64, i+1-len(d.buckets))...)
	}
	d.buckets[i]++
	d.addExact(v)
}

// addExact counts a value by itself, as long as there are few others.
func (d *Distribution) addExact(v uint64) {
	if d.Count == 1 {
		d.exact = []counted{{v, 1}}
		return
	}
	if len(d.exact) == 0 { // there were too many
		return
	}
	if d.exact[d.last].value == v { // mostly
		d.exact[d.last].count++
		return
	}
	i, known := slices.BinarySearchFunc(d.exact, v, func(c counted, v uint64) int { return cmp.Compare(c.value, v) })
	switch {
	case known:
		d.exact[i].count++
	case len(d.exact) == maxExact:
		d.exact, i = nil, 0
	default:
		d.exact = slices.Insert(d.exact, i, counted{v, 1})
	}
	d.last = i
}

// Exact reports whether percentiles are exact, not rounded up.
func (d *Distribution) Exact() bool { return d.Count == 0 || len(d.exact) > 0 }

// Mean returns the mean, 0 if there are no values.
func (d *Distribution) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return float64(d.Sum) / float64(d.Count)
}

// Percentile returns the value that p percent of all do not exceed, 0 if there are no values.
// It is rounded up if it is not Exact.
func (d *Distribution) Percentile(p float64) uint64 {
	rank := uint64(math.Ceil(p / 100 * float64(d.Count)))
	for _, c := range d.exact {
		if c.count >= rank {
			return c.value
		}
		rank -= c.count
	}
	for i, n := range d.buckets {
		if n >= rank {
			return min(max(bucketEnd(i), d.Min), d.Max)
		}
		rank -= n
	}
	return d.Max
}

// bucketOf returns the bucket of a value: exact for small ones.
func bucketOf(v uint64) int {
	if v < distributionParts {
		return int(v)
	}
	shift := bits.Len64(v) - bits.Len64(distributionParts)
	return shift*distributionParts + int(v>>shift)
}

// bucketEnd returns the largest value of a bucket.
func bucketEnd(i int) uint64 {
	if i < 2*distributionParts {
		return uint64(i)
	}
	shift := i/distributionParts - 1
	return uint64(i%distributionParts+distributionParts+1)<<shift - 1
}
