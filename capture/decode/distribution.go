package decode

import (
	"math"
	"math/bits"
)

// distributionParts is into how many parts a Distribution divides each power of two.
const distributionParts = 8

// A Distribution counts values by size, with a relative error of at most an eighth in
// its percentiles.
type Distribution struct {
	Count    uint64
	Min, Max uint64
	Sum      uint64

	buckets []uint64
}

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
}

// Mean returns the mean, 0 if there are no values.
func (d *Distribution) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return float64(d.Sum) / float64(d.Count)
}

// Percentile returns the value that p percent of all do not exceed, 0 if there are no values.
func (d *Distribution) Percentile(p float64) uint64 {
	rank := uint64(math.Ceil(p / 100 * float64(d.Count)))
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
