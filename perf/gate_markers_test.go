package perf_test

import (
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/quantile"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// markersUsual is the processor time of a Write of 1 MiB with markers as a ratio to one without, when somebody last
// looked.
const markersUsual = 1.1

// TestGateOfMarkers is a part of the gate: markers must not come to cost more by a half.
func TestGateOfMarkers(t *testing.T) {
	if os.Getenv("IWARP_GATE") == "" {
		t.Skip("IWARP_GATE is not set: this takes some seconds, and a machine that does nothing else")
	}
	for range attempts {
		ratio := markersRatio(t)
		t.Logf("%.2f of the processor time without markers, usually %.2f", ratio, markersUsual)
		if ratio <= markersUsual*room {
			return
		}
	}
	t.Errorf("a Write of 1 MiB with markers takes more than %.1f times what it took, in %d runs", room, attempts)
}

// markersRatio is the median of the ratios of pairs of runs that follow each other.
func markersRatio(t *testing.T) float64 {
	t.Helper()
	var ratios []float64
	for turn := range 5 {
		var cpu [2]float64 // without, with
		for i := range cpu {
			with := (turn + i) % 2
			cpu[with] = cpuOfWrite(t, with == 1)
		}
		ratios = append(ratios, cpu[1]/cpu[0])
	}
	return quantile.Median(ratios)
}

// cpuOfWrite is the processor time of both ends for a Write of 1 MiB, in microseconds.
func cpuOfWrite(t *testing.T, markers bool) float64 {
	t.Helper()
	report, err := perf.Run(t.Context(), perf.Options{
		Ops: []perf.Op{perf.Write}, Sizes: []int{1 << 20}, Duration: 150 * time.Millisecond,
		Markers: markers, NoBaseline: true, KeepDisturbed: true,
	}, perf.Observer{})
	testrig.Must(t, err)
	cpu := report.Results[0].CPU
	if cpu == 0 {
		t.Skip("this system does not tell the processor time of a process")
	}
	return cpu
}
