package perf

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// A sample is what a slice has measured.
type sample struct {
	count   int // messages on each connection
	elapsed time.Duration
	rtt     *hdr.Histogram // nanoseconds; nil for bandwidth
	usage   usage          // of both ends
}

// rate is messages a second, on each connection.
func (x sample) rate() float64 { return float64(x.count) / x.elapsed.Seconds() }

// typical is the median round trip in nanoseconds.
func (x sample) typical() float64 { return float64(x.rtt.ValueAtQuantile(50)) }

// late is the round trip in nanoseconds that 1 % exceed.
func (x sample) late() float64 { return float64(x.rtt.ValueAtQuantile(99)) }

// cpu is the time in nanoseconds that both ends computed for a message.
func (x sample) cpu() float64 { return float64(x.usage.CPU) / float64(x.count) }

// values returns a figure of each sample.
func values(samples []sample, of func(sample) float64) []float64 {
	all := make([]float64, len(samples))
	for i, x := range samples {
		all[i] = of(x)
	}
	return all
}

// elapsed is how long all samples took.
func elapsed(samples []sample) (sum time.Duration) {
	for _, x := range samples {
		sum += x.elapsed
	}
	return sum
}

// total sums samples up.
func total(samples []sample) sample {
	sum := sample{rtt: newHistogram()}
	for _, x := range samples {
		sum.count += x.count
		sum.elapsed += x.elapsed
		sum.usage = sum.usage.plus(x.usage)
		if x.rtt != nil {
			sum.rtt.Merge(x.rtt)
		}
	}
	return sum
}
