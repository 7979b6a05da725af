package main

import "github.com/goiwarp/iwarp/perf"

// A work is something to measure that all tools have in some form.
type work struct {
	key, title, unit string
	less             bool // less is better
	op               perf.Op
	size             int // bytes
	quantity         perf.Quantity
}

// works are measured in this order.
func works() []work {
	return []work{
		{"latency-64", "64 bytes, half a round trip", "us", true, perf.Send, 64, perf.Latency},
		{"latency-64k", "64 KiB, half a round trip", "us", true, perf.Write, 64 << 10, perf.Latency},
		{"rate-64", "64 bytes, messages", "million/s", false, perf.Send, 64, perf.Bandwidth},
		{"bandwidth-1m", "1 MiB, bandwidth", "MiB/s", false, perf.Write, 1 << 20, perf.Bandwidth},
	}
}

// least is the key of a work of which the best message counts, and which the rest of the machine disturbs least.
const least = "least-64"

func leastWork() work {
	w := works()[0]
	w.key, w.title = least, w.title+", least"
	return w
}

func workOf(key string) work {
	for _, w := range append(works(), leastWork()) {
		if w.key == key {
			return w
		}
	}
	return work{key: key, title: key}
}

// figure turns messages a second, or nanoseconds of half a round trip, into the work's
// unit.
func (w work) figure(x float64) float64 {
	switch w.unit {
	case "us":
		return x / 1e3
	case "MiB/s":
		return x * float64(w.size) / (1 << 20)
	default:
		return x / 1e6
	}
}
