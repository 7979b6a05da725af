package perf

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// near compares figures that went through a histogram of three digits.
var near = cmpopts.EquateApprox(0.002, 0)

func TestLatencies(t *testing.T) {
	rtt := newHistogram()
	for i := range 3000 {
		record(rtt, time.Duration(i%1000+1)*time.Microsecond)
	}
	want := Latencies{
		LatencyIterations: 3000,
		Min:               0.5, Max: 500, Typical: 250, Average: 250.25, Stdev: 144.3, P99: 495, P999: 499.5,
	}
	if diff := cmp.Diff(want, latencies(rtt, 2), near); diff != "" {
		t.Errorf("half round trips of 1 to 1000 us (-want +got):\n%s", diff)
	}
	if got := latencies(rtt, 1); math.Abs(got.Typical-500) > 1 {
		t.Errorf("whole round trips: typical %v us, want 500", got.Typical)
	}
	if got := latencies(newHistogram(), 1); got != (Latencies{}) {
		t.Errorf("nothing recorded: %+v", got)
	}
}

func TestRecordOutOfBounds(t *testing.T) {
	h := newHistogram()
	record(h, -time.Second)
	record(h, time.Hour)
	if h.TotalCount() != 2 || h.Min() != 1 {
		t.Errorf("%d recorded, the least %d ns; want 2, and 1 ns", h.TotalCount(), h.Min())
	}
}

// samples returns one sample of each elapsed time, of 1000 messages, with
// round trips of as many microseconds.
func samples(elapsed ...time.Duration) []sample {
	var all []sample
	for _, d := range elapsed {
		s := sample{count: 1000, elapsed: d, rtt: newHistogram()}
		record(s.rtt, d/1000)
		all = append(all, s)
	}
	return all
}

func TestResult(t *testing.T) {
	const ms = time.Millisecond
	bw := series{streams: 2, keep: true, iwarp: samples(10*ms, 20*ms, 30*ms), tcp: samples(5*ms, 20*ms, 60*ms)}
	lat := series{streams: 2, keep: true, iwarp: samples(8*ms, 12*ms), tcp: samples(4*ms, 4*ms)}
	got := newResult(Send, 1<<20, 64, bw, lat)
	want := Result{
		Op: Send, Size: 1 << 20, TXDepth: 64,
		Figures: Figures{
			Iterations: 6000,
			BWPeak:     200000, BWAverage: 100000, MsgRate: 0.1,
			Latencies: Latencies{LatencyIterations: 2, Min: 4, Max: 6, Typical: 5, Average: 5, Stdev: 1},
		},
		TCP: &Figures{
			Iterations: 6000,
			BWPeak:     400000, BWAverage: 6000 / 0.085, MsgRate: 6000 / 0.085 / 1e6,
			Latencies: Latencies{LatencyIterations: 2, Min: 2, Max: 2, Typical: 2, Average: 2},
		},
		Ratios: Ratios{
			RatioBW:  1,   // of 0.5, 1 and 2
			RatioLat: 2.5, // of 2 and 3
			Quartiles: map[string][2]float64{
				"ratio_bw": {0.75, 1.5}, "ratio_lat": {2.25, 2.75},
			},
		},
		Pairs: Pairs{BWPairs: 3, LatPairs: 2},
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportJSON(t *testing.T) {
	x := samples(time.Millisecond)
	x[0].rtt = slice(slices.Repeat([]int{1}, 3000)...).rtt
	x[0].usage = usage{CPU: time.Millisecond, Switches: 5}
	bw := series{streams: 1, keep: true, iwarp: x, tcp: x}
	report := Report{Negotiated: Negotiated{Dialect: mpa.DialectRFC6581},
		Results: []Result{newResult(Write, 64, 128, bw, bw)}}
	report.Results[0].EMSS, report.Results[0].MULPDU = 65483, 64766
	text, err := json.Marshal(report)
	testrig.Must(t, err)
	var got struct {
		Negotiated map[string]any
		Results    []map[string]any
	}
	testrig.Must(t, json.Unmarshal(text, &got))
	figures := []string{
		"bw_average", "bw_peak", "msg_rate", "iterations", "iterations_lat",
		"cpu_ns_per_byte", "cpu_us_per_msg", "cpu_us_per_msg_lat", "switches_per_msg", "switches_per_msg_lat",
		"p99", "p999", "t_avg", "t_max", "t_min", "t_stdev", "t_typical",
	}
	result := append([]string{
		"op", "size", "tcp", "depth", "emss", "mulpdu", "pairs_bw", "pairs_lat", "dropped_bw", "dropped_lat",
		"ratio_bw", "ratio_cpu", "ratio_cpu_lat", "ratio_lat", "ratio_p99", "ratio_quartiles",
	}, figures...)
	wantKeys(t, "negotiated", got.Negotiated, []string{
		"crc", "dialect", "emss", "ird", "markers_received", "markers_sent", "mulpdu", "network", "ord",
		"peer_to_peer", "revision", "rtr",
	})
	overSCTP, err := json.Marshal(Negotiated{Network: network.SCTP})
	testrig.Must(t, err)
	got.Negotiated = nil
	testrig.Must(t, json.Unmarshal(overSCTP, &got.Negotiated))
	wantKeys(t, "negotiated over SCTP", got.Negotiated,
		[]string{"dialect", "ird", "mulpdu", "network", "ord", "peer_to_peer", "rtr"})
	wantKeys(t, "result", got.Results[0], result)
	wantKeys(t, "tcp", got.Results[0]["tcp"].(map[string]any), figures)
	if got.Results[0]["op"] != "Write" || got.Results[0]["size"] != 64.0 {
		t.Errorf("op %v, size %v", got.Results[0]["op"], got.Results[0]["size"])
	}
}

func wantKeys(t *testing.T, name string, object map[string]any, want []string) {
	t.Helper()
	var got []string
	for key := range object {
		got = append(got, key)
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("keys of %s (-want +got):\n%s", name, diff)
	}
}

func TestRescaled(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		count   int
		elapsed time.Duration
		want    int
	}{
		{100, 10 * ms, 200},
		{100, 40 * ms, 50},
		{100, 0, 1000},              // ten times at most
		{100, time.Hour, 10},        // a tenth at least
		{2, time.Hour, 2},           // two are the least
		{1000, 20 * ms, 1000},       // just right
		{3, 19 * ms, 3},             // rounded
		{1000, 21 * ms, 952},        // slightly fewer
		{1 << 20, ms, 10 << 20},     // ten times at most
		{1 << 20, 2 * ms, 10485760}, // exactly ten times
	} {
		if got := rescaled(test.count, test.elapsed, 20*ms); got != test.want {
			t.Errorf("%d messages in %v: got %d, want %d", test.count, test.elapsed, got, test.want)
		}
	}
}
