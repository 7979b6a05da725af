package main

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// TestPerfMarks: figures that are of few slices are marked, those of plain TCP too, and the others are not. What the mark means is said.
func TestPerfMarks(t *testing.T) {
	figures := perf.Figures{BWAverage: 123456.78, MsgRate: 1.25, Latencies: perf.Latencies{Typical: 10350.59, P99: 22000.25}, Costs: perf.Costs{CPU: 3}}
	scarce := func(bw, lat int) perf.Pairs {
		return perf.Pairs{BWPairs: 40, BWDropped: bw, LatPairs: 40, LatDropped: lat}
	}
	for _, test := range []struct {
		pairs perf.Pairs
		want  string
		says  []string
	}{
		{scarce(0, 35), "123456.78 1.25000 10350.59 22000.25 3.00 123456.78 10350.59 22000.25 3.00", nil},
		{scarce(36, 0), "123456.78* 1.25000* 10350.59 22000.25 3.00 123456.8* 10350.59 22000.25 3.00", []string{" *: fewer than 5 slices"}},
		{scarce(0, 38), "123456.78 1.25000 10350.59* 22000.25* 3.00 123456.78 10350.6* 22000.2* 3.00", []string{" *: fewer than 5 slices"}},
	} {
		r := perf.Result{Figures: figures, TCP: &figures, Pairs: test.pairs}
		var row []string
		for _, c := range perfColumns(nil, true, false, false, false) {
			if text := c.text(r); strings.Contains(text, ".") || strings.ContainsAny(text, "*+") {
				row = append(row, text)
			}
		}
		if got := strings.Join(row, " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.pairs, got, test.want)
		}
		foot := footing(&perf.Report{Options: perf.Options{Duration: perf.DefaultDuration}, Results: []perf.Result{r}})
		for _, text := range test.says {
			if !strings.Contains(foot, text) {
				t.Errorf("%+v: nothing of %q: %s", test.pairs, text, foot)
			}
		}
		if marked := strings.Contains(foot, "*: "); marked != (test.says != nil) {
			t.Errorf("%+v: %s", test.pairs, foot)
		}
	}
}
