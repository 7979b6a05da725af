package perf

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// A Report is a whole measurement.
type Report struct {
	Negotiated Negotiated `json:"negotiated"`
	Options    Options    `json:"options"`
	Results    []Result   `json:"results"`
}

// A Result is what was measured of one operation at one size. The JSON keys
// are perftest's where it has them.
type Result struct {
	Op      Op  `json:"op"`
	Size    int `json:"size"`     // message length in octets
	TXDepth int `json:"tx_depth"` // messages under way, on each connection
	Figures

	TCP *Figures `json:"tcp,omitempty"` // plain TCP's, if it was measured

	// RatioBW is iWARP's bandwidth divided by TCP's, RatioLat iWARP's median
	// latency divided by TCP's; both the median over the rounds. 0 without TCP.
	RatioBW  float64 `json:"ratio_bw,omitempty"`
	RatioLat float64 `json:"ratio_lat,omitempty"`
}

// Figures are what was measured of one transport.
type Figures struct {
	MsgSize    int   `json:"MsgSize"`      // octets, as Size
	Iterations int64 `json:"n_iterations"` // messages of the bandwidth slices

	BWPeak    float64 `json:"BW_peak"`    // MiB/s of the best round
	BWAverage float64 `json:"BW_average"` // MiB/s over all rounds
	MsgRate   float64 `json:"MsgRate"`    // million messages a second, over all rounds

	Latencies
}

// A series is the samples of one quantity, by transport in order of rounds.
type series struct {
	qps        int
	iwarp, tcp []sample
}

func (s *series) add(j job, x sample) {
	if j.Transport == TCP {
		s.tcp = append(s.tcp, x)
		return
	}
	s.iwarp = append(s.iwarp, x)
}

// newResult sums up the two quantities.
func newResult(op Op, size, depth int, bw, lat series) Result {
	r := Result{Op: op, Size: size, TXDepth: depth, Figures: figures(op, size, bw.qps, bw.iwarp, lat.iwarp)}
	if len(bw.tcp) > 0 {
		tcp := figures(op, size, bw.qps, bw.tcp, lat.tcp)
		r.TCP = &tcp
		r.RatioBW = ratio(bw, sample.rate)
		r.RatioLat = ratio(lat, sample.typical)
	}
	return r
}

func figures(op Op, size, qps int, bw, lat []sample) Figures {
	f := Figures{MsgSize: size}
	var elapsed time.Duration
	for _, s := range bw {
		f.Iterations += int64(s.count * qps)
		elapsed += s.elapsed
		f.BWPeak = max(f.BWPeak, mebibytes(s.rate()*float64(size*qps)))
	}
	if elapsed > 0 {
		rate := float64(f.Iterations) / elapsed.Seconds()
		f.BWAverage, f.MsgRate = mebibytes(rate*float64(size)), rate/1e6
	}
	f.Latencies = latencies(merged(lat), tripParts(op))
	return f
}

func mebibytes(octets float64) float64 { return octets / (1 << 20) }

// tripParts is how many latencies make a round trip: a ping-pong has two
// messages, a Read is one operation.
func tripParts(op Op) float64 {
	if op == Read {
		return 1
	}
	return 2
}

func merged(samples []sample) *hdr.Histogram {
	sum := newHistogram()
	for _, s := range samples {
		sum.Merge(s.rtt)
	}
	return sum
}

// rate is messages a second, on each connection.
func (s sample) rate() float64 { return float64(s.count) / s.elapsed.Seconds() }

// typical is the median round trip in nanoseconds.
func (s sample) typical() float64 { return float64(s.rtt.ValueAtQuantile(50)) }

// ratio returns the median over the rounds of iWARP's value divided by TCP's.
func ratio(s series, value func(sample) float64) float64 {
	var all []float64
	for i := range min(len(s.iwarp), len(s.tcp)) {
		all = append(all, value(s.iwarp[i])/value(s.tcp[i]))
	}
	return median(all)
}
