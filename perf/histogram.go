package perf

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest round trip that the histograms tell from longer ones.
const longest = time.Minute

// newHistogram returns a histogram of nanoseconds, exact to three digits.
func newHistogram() *hdr.Histogram { return hdr.New(1, longest.Nanoseconds(), 3) }

// record adds a round trip.
func record(h *hdr.Histogram, d time.Duration) {
	// Within these bounds recording cannot fail.
	_ = h.RecordValue(min(max(d.Nanoseconds(), 1), longest.Nanoseconds()))
}

// Latencies are what perftest prints of latencies, in microseconds.
type Latencies struct {
	LatencyIterations int64 `json:"iterations_lat"`

	Min     float64 `json:"t_min"`
	Max     float64 `json:"t_max"`
	Typical float64 `json:"t_typical"` // the median
	Average float64 `json:"t_avg"`
	Stdev   float64 `json:"t_stdev"`
	P99     float64 `json:"p99,omitempty"`  // of too few round trips there is none
	P999    float64 `json:"p999,omitempty"` // likewise
}

// latencies tells what a histogram of round trips says of latencies, which
// are so many-th parts of one.
func latencies(rtt *hdr.Histogram, parts float64) Latencies {
	if rtt.TotalCount() == 0 {
		return Latencies{}
	}
	us := func(ns float64) float64 { return ns / parts / 1e3 }
	late := func(quantile float64, least int64) float64 {
		if rtt.TotalCount() < least {
			return 0
		}
		return us(float64(rtt.ValueAtQuantile(quantile)))
	}
	return Latencies{
		LatencyIterations: rtt.TotalCount(),

		Min:     us(float64(rtt.Min())),
		Max:     us(float64(rtt.Max())),
		Typical: us(float64(rtt.ValueAtQuantile(50))),
		Average: us(rtt.Mean()),
		Stdev:   us(rtt.StdDev()),
		P99:     late(99, leastLate),
		P999:    late(99.9, leastLatest),
	}
}
