package perf

import "github.com/goiwarp/iwarp/internal/quantile"

// A Report is a whole measurement. docs/perf-json.md describes its JSON.
type Report struct {
	// none of a run that was interrupted before its connections were up
	Negotiated Negotiated `json:"negotiated,omitzero"`
	Options    Options    `json:"options"`
	Results    []Result   `json:"results"`
	// Interrupted: the results are those that there were when an end was interrupted, or the responder had gone. Who
	// has collected them sets it.
	Interrupted bool `json:"interrupted,omitempty"`
}

// A Result is what was measured of one operation at one size.
type Result struct {
	Op      Op  `json:"op"`
	Size    int `json:"size"`  // message length in bytes
	TXDepth int `json:"depth"` // messages under way, on each connection
	// RXDepth is how many messages each end has receives for, if they take some.
	RXDepth int `json:"rx_depth,omitempty"`
	// Ahead is the part of the bytes of payload, while bandwidth is measured, that both ends placed ahead of others
	// that had not come yet. Over the system's TCP there are none.
	Ahead float64 `json:"placed_ahead,omitempty"`
	// EMSS and MULPDU, in bytes, are those of the initiator's first connection when bandwidth had been measured: TCP
	// may know the path better by then than at the startup. EMSS is 0 where there is none.
	EMSS   int `json:"emss,omitempty"`
	MULPDU int `json:"mulpdu,omitempty"`
	Figures

	TCP *Figures `json:"tcp,omitempty"` // plain TCP's, if it was measured

	Ratios
	Pairs
	Trips
}

// Trips say how long slices of bandwidth were beside the round trip of the path. Each ends with one, in which nothing
// more is sent.
type Trips struct {
	RoundTrip float64 `json:"round_trip_us,omitempty"` // microseconds, the shortest that was seen of the path
	// how many of them a slice took, of the transport whose slices were shorter
	SliceTrips float64 `json:"slice_round_trips,omitempty"`
	// ShortSlices: they were fewer than 10, and the bandwidth of either transport, with its ratio, says more of the
	// round trip than of what the path carries.
	ShortSlices bool `json:"short_slices,omitempty"`
}

func countTrips(bw series) Trips {
	n := bw.inTrips()
	return Trips{RoundTrip: float64(bw.trip) / 1e3, SliceTrips: n, ShortSlices: n > 0 && n < leastTrips}
}

// Figures are what was measured of one transport.
type Figures struct {
	Iterations int64 `json:"iterations"` // messages of the bandwidth slices

	BWPeak    float64 `json:"bw_peak"`    // MiB/s of the best slice
	BWAverage float64 `json:"bw_average"` // MiB/s over all slices
	MsgRate   float64 `json:"msg_rate"`   // million messages a second, over all slices

	Latencies

	// Costs of the bandwidth slices, and of the latency slices: there, a message is one
	// round trip of a Read, and half of one of the others.
	Costs
	LatencyCosts
}

// Costs are what both ends take for a message while bandwidth is measured. What the system
// does not tell is 0.
type Costs struct {
	CPU      float64 `json:"cpu_us_per_msg,omitempty"`   // microseconds
	CPUByte  float64 `json:"cpu_ns_per_byte,omitempty"`  // nanoseconds
	Switches float64 `json:"switches_per_msg,omitempty"` // context switches of threads that go to sleep
	Calls    float64 `json:"syscalls_per_msg,omitempty"` // system calls
}

// LatencyCosts are Costs while latency is measured.
type LatencyCosts struct {
	CPULat      float64 `json:"cpu_us_per_msg_lat,omitempty"`
	SwitchesLat float64 `json:"switches_per_msg_lat,omitempty"`
	CallsLat    float64 `json:"syscalls_per_msg_lat,omitempty"`
}

// newResult sums up the two quantities.
func newResult(op Op, size, depth int, bw, lat series) Result {
	r := Result{Op: op, Size: size, TXDepth: depth, Pairs: countPairs(bw, lat), Trips: countTrips(bw)}
	bwKept, latKept := bw.kept(), lat.kept()
	r.Figures = figures(op, size, IWARP, bwKept, latKept)
	r.costsOf(op, size, bw.streams, bw.iwarp, lat.iwarp)
	if len(bw.tcp) > 0 {
		tcp := figures(op, size, TCP, bwKept, latKept)
		tcp.costsOf(op, size, bw.streams, bw.tcp, lat.tcp)
		r.TCP = &tcp
		r.Ratios = ratios(bw, lat)
	}
	return r
}

// figures are those of one transport, of slices that count.
func figures(op Op, size int, t Transport, bw, lat series) Figures {
	f := Figures{}
	all := total(bw.of(t))
	f.Iterations = int64(all.count * bw.streams)
	for _, x := range bw.of(t) {
		f.BWPeak = max(f.BWPeak, mebibytes(x.rate()*float64(size*bw.streams)))
	}
	if all.elapsed > 0 {
		rate := all.rate() * float64(bw.streams)
		f.BWAverage, f.MsgRate = mebibytes(rate*float64(size)), rate/1e6
	}
	f.Latencies = latencies(total(lat.of(t)).rtt, tripParts(op))
	f.slices(lat.of(t), tripParts(op), lat.lateInSlices())
	return f
}

// costsOf adds what was taken. Disturbed slices count: a thread that waits for a CPU takes
// none.
func (f *Figures) costsOf(op Op, size, streams int, bw, lat []sample) {
	all, trips := total(bw), total(lat)
	f.Costs = costs(all, float64(all.count*streams), size)
	c := costs(trips, float64(trips.count)*tripParts(op), size)
	f.LatencyCosts = LatencyCosts{CPULat: c.CPU, SwitchesLat: c.Switches}
}

// costs divides what was taken among messages.
func costs(x sample, messages float64, size int) Costs {
	if messages == 0 {
		return Costs{}
	}
	cpu := float64(x.usage.CPU) / messages
	return Costs{CPU: cpu / 1e3, CPUByte: cpu / float64(size), Switches: float64(x.usage.Switches) / messages}
}

func mebibytes(data float64) float64 { return data / (1 << 20) }

// tripParts is how many latencies make a round trip: a ping-pong has two
// messages, a Read is one operation.
func tripParts(op Op) float64 {
	if op.Fetches() {
		return 1
	}
	return 2
}

// slices replaces what a disturbance of a single slice would change by the median over the
// slices: the median, and where slices have one, the 99th percentile.
func (l *Latencies) slices(lat []sample, parts float64, late bool) {
	if len(lat) == 0 {
		return
	}
	l.Typical = quantile.Median(values(lat, sample.typical)) / parts / 1e3
	if late && l.P99 > 0 {
		l.P99 = quantile.Median(values(lat, sample.late)) / parts / 1e3
	}
	if l.P999 > 0 {
		l.P999 = max(l.P99, l.P999)
	}
}
