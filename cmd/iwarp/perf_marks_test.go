package main

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/perf"
)

// TestPerfMarks: figures that are of few slices, or of ones that were short beside the round trip, are marked, those of
// plain TCP too, and the others are not. What the marks mean is said.
func TestPerfMarks(t *testing.T) {
	figures := perf.Figures{BWAverage: 123456.78, MsgRate: 1.25,
		Latencies: perf.Latencies{Typical: 10350.59, P99: 22000.25}, Costs: perf.Costs{CPU: 3}}
	scarce := func(bw, lat int) perf.Pairs {
		return perf.Pairs{BWPairs: 40, BWDropped: bw, LatPairs: 40, LatDropped: lat}
	}
	short := perf.Trips{RoundTrip: 20000, SliceTrips: 3.75, ShortSlices: true}
	for _, test := range []struct {
		pairs perf.Pairs
		trips perf.Trips
		want  string
		says  []string
	}{
		{scarce(0, 35), perf.Trips{}, "123456.78 1.25000 10350.59 22000.25 3.00 123456.78 10350.59 22000.25 3.00", nil},
		{scarce(36, 0), perf.Trips{}, "123456.78* 1.25000* 10350.59 22000.25 3.00 123456.8* 10350.59 22000.25 3.00",
			[]string{" *: fewer than 5 slices"}},
		{scarce(0, 38), perf.Trips{}, "123456.78 1.25000 10350.59* 22000.25* 3.00 123456.78 10350.6* 22000.2* 3.00",
			[]string{" *: fewer than 5 slices"}},
		{scarce(0, 0), short, "123456.78+ 1.25000+ 10350.59 22000.25 3.00 123456.8+ 10350.59 22000.25 3.00",
			[]string{" +: slices of 3.8 round trips of 20ms", "--duration of 400ms"}},
		{scarce(40, 0), short, "123456.78*+ 1.25000*+ 10350.59 22000.25 3.00 123457*+ 10350.59 22000.25 3.00",
			[]string{" *: ", " +: "}},
	} {
		r := perf.Result{Figures: figures, TCP: &figures, Pairs: test.pairs, Trips: test.trips}
		var row []string
		for _, c := range perfColumns(nil, true, false, false, false) {
			if text := c.text(r); strings.Contains(text, ".") || strings.ContainsAny(text, "*+") {
				row = append(row, text)
			}
		}
		if got := strings.Join(row, " "); got != test.want {
			t.Errorf("%+v, %+v: %s, want %s", test.pairs, test.trips, got, test.want)
		}
		foot := footing(&perf.Report{Options: perf.Options{Duration: perf.DefaultDuration}, Results: []perf.Result{r}})
		for _, text := range test.says {
			if !strings.Contains(foot, text) {
				t.Errorf("%+v, %+v: nothing of %q: %s", test.pairs, test.trips, text, foot)
			}
		}
		if marked := strings.Contains(foot, "*: ") || strings.Contains(foot, "+: "); marked != (test.says != nil) {
			t.Errorf("%+v, %+v: %s", test.pairs, test.trips, foot)
		}
	}
}

// TestPerfFewPairs: where slices were few, as over a path with a long round trip, it is said why.
func TestPerfFewPairs(t *testing.T) {
	report := &perf.Report{Options: perf.Options{Duration: perf.DefaultDuration},
		Results: []perf.Result{{Pairs: perf.Pairs{BWPairs: 3, LatPairs: 5}}}}
	if got := footing(report); !strings.Contains(got,
		"(3 or more for each quantity, as time ran out: 8 in all, of which 0 were disturbed") ||
		!strings.Contains(got, "not counted where there are fewer than 20 pairs") {
		t.Error(got)
	}
	report.Options.Duration = 100 * time.Millisecond
	report.Results[0].BWPairs, report.Results[0].LatPairs = 3, 3
	if got := footing(report); !strings.Contains(got,
		"(3 or more for each quantity, as time ran out, too few to judge") {
		t.Error(got)
	}
}
