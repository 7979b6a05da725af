package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/dev/internal/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestLateOfShortSlices: a 99th percentile of slices with fewer than 100 round trips is not in the table, whatever the
// record says of it.
func TestLateOfShortSlices(t *testing.T) {
	const ratio = "1.58 (1.45 - 1.66)"
	for _, test := range []struct {
		ours, tcp           int64 // round trips of the slices that count
		measured, disturbed int   // pairs
		want                string
	}{
		{162, 258, 40, 31, "-"},
		{900, 900, 40, 31, ratio},
		{899, 900, 40, 31, "-"},
		{900, 899, 40, 31, "-"},
		{499, 900, 40, 38, "-"}, // of five
		{500, 900, 40, 38, ratio},
	} {
		r := perf.Result{Op: perf.Write, Size: 1 << 20, TCP: new(perf.Figures),
			Pairs: perf.Pairs{LatPairs: test.measured, LatDropped: test.disturbed}}
		r.LatencyIterations, r.TCP.LatencyIterations = test.ours, test.tcp
		r.Ratios = perf.Ratios{RatioP99: 1.58, Quartiles: map[string][2]float64{"ratio_p99": {1.45, 1.66}}}
		table := perfTable(&record{Perf: []perf.Report{{Negotiated: perf.Negotiated{CC: "reno"},
			Results: []perf.Result{r}}}})
		if want := "| Write | 1048576 | reno | - | - | " + test.want + " | - |"; !strings.Contains(table, want) {
			t.Errorf("%d and %d round trips in %d slices:\n%s\nhas no %s",
				test.ours, test.tcp, test.measured-test.disturbed, table, want)
		}
	}
}

// TestBusyRatio: a ratio that another run would not repeat has quartiles, and no median.
func TestBusyRatio(t *testing.T) {
	r := perf.Result{Ratios: perf.Ratios{RatioLat: 1.1,
		Quartiles:    map[string][2]float64{"ratio_bw": {0.5, 2}, "ratio_lat": {1, 1.2}},
		Inconclusive: []string{"ratio_bw"}}}
	for key, want := range map[string]string{"ratio_bw": "busy: 0.50 - 2.00",
		"ratio_lat": "1.10 (1.00 - 1.20)", "ratio_cpu": "-"} {
		if got := ratioText(r, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestMeasuredAt: the JSON file and what stands in front of a table name the commit, and say so where sources were
// changed beside it.
func TestMeasuredAt(t *testing.T) {
	dir := rig.Repository(t, "main.go")
	for _, changed := range []bool{false, true} {
		if changed {
			rig.WriteBelow(t, dir, "main.go", "changed\n")
		}
		at, err := now(t.Context())
		testrig.Must(t, err)
		file, err := json.Marshal(at)
		testrig.Must(t, err)
		if got := strings.Contains(string(file), `"commit":"`+at.Commit+
			`","modified":true,"machine"`); len(at.Commit) != 7 || got != changed {
			t.Errorf("changed: %v: the file has %s", changed, file)
		}
		if got := strings.Contains(at.text(), "at commit "+at.Commit+" (changed)"); got != changed {
			t.Errorf("changed: %v: %s", changed, at.text())
		}
	}
}
