package main

import (
	"math"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// TestUnrepeatedRatio: a ratio has a median only where another run would find about the same, and quartiles from four
// rounds on, in each of the tables.
func TestUnrepeatedRatio(t *testing.T) {
	for _, test := range []struct {
		found            spreadOf
		rounds           int
		median, quarters string
	}{
		{spreadOf{1.1, 1, 1.17}, 7, "1.10", "1.00 - 1.17"},
		{spreadOf{1.1, 1, 1.18}, 7, "busy", "1.00 - 1.18"},
		{spreadOf{1.1, 1, 1.18}, 15, "1.10", "1.00 - 1.18"},
		{spreadOf{5.22, 0.48, 11.63}, 7, "busy", "0.48 - 11.63"},
		{spreadOf{2, 2, 2}, 4, "2.00", "2.00 - 2.00"},
		{spreadOf{221.31, 110, 330}, 3, "221.31", "-"},
		{spreadOf{221.31, 110, 330}, 2, "221.31", "-"},
		{spreadOf{2, 2, 2}, 1, "2.00", "-"},
		{spreadOf{}, 7, "-", "-"},
	} {
		s, apart := test.found, "| "+test.median+" | "+test.quarters+" |"
		v := value{Work: "latency-64", Tool: "libfabric", Rounds: test.rounds, Ratio: s.Median,
			RatioLower: s.Lower, RatioUpper: s.Upper}
		for name, table := range map[string]string{
			"tools":   toolsTable(&record{Rounds: test.rounds, Values: []value{v}}),
			"library": libraryTable(&record{Library: &libraryStudy{Values: []beside{{value: v}}}}),
			"siw": siwTable(&record{Siw: []siwValue{{Rounds: test.rounds, Ratio: s.Median,
				RatioLower: s.Lower, RatioUpper: s.Upper}}}),
		} {
			if !strings.Contains(table, apart) {
				t.Errorf("%+v of %d rounds: no %q in the table %s\n%s", s, test.rounds, apart, name, table)
			}
		}
		inOne := test.median + " (" + test.quarters + ")"
		switch {
		case test.quarters == "-":
			inOne = test.median
		case test.median == "busy":
			inOne = "busy: " + test.quarters
		}
		if table := goalsTable(&record{Goals: []goalValue{{goal{Work: "a Send"}, test.rounds,
			s}}}); !strings.Contains(table, "| "+inOne+" | ") {
			t.Errorf("%+v of %d rounds: no %q in\n%s", s, test.rounds, inOne, table)
		}
		if table := lossTable(&record{Loss: []lossyLink{lossyOf(s, test.rounds)}}); strings.Count(table,
			"| "+inOne+" ") != 3 {
			t.Errorf("%+v of %d pairs: no %q in\n%s", s, test.rounds, inOne, table)
		}
	}
}

// lossyOf has one ratio for all.
func lossyOf(s spreadOf, pairs int) lossyLink {
	q := [2]float64{s.Lower, s.Upper}
	return lossyLink{Result: perf.Result{
		TCP: new(perf.Figures), Pairs: perf.Pairs{BWPairs: pairs, LatPairs: pairs},
		Ratios: perf.Ratios{
			RatioBW: s.Median, RatioCPU: s.Median, RatioLat: s.Median,
			Quartiles: map[string][2]float64{"ratio_bw": q, "ratio_cpu": q, "ratio_lat": q},
		},
	}}
}

// TestFigures of fewer than four rounds have no quartiles, and what a tool takes more has a median only where the ratio
// has.
func TestFigures(t *testing.T) {
	v := beside{value{"latency-64", "UCX", "us", 7, 4, 3.9, 4.1, 1.1, 1, 1.1}, 0.4, -1.99, 1.01}
	for _, test := range []struct {
		rounds int
		upper  float64 // of the ratio
		want   string
	}{
		{7, 1.1, "| 4.00 us | 3.90 - 4.10 | 1.10 | 1.00 - 1.10 | 0.40 us | -1.99 to 1.01 |"},
		{7, 1.3, "| 4.00 us | 3.90 - 4.10 | busy | 1.00 - 1.30 | busy | -1.99 to 1.01 |"},
		{2, 1.1, "| 4.00 us | - | 1.10 | - | 0.40 us | - |"},
		{2, 1.3, "| 4.00 us | - | 1.10 | - | 0.40 us | - |"},
	} {
		v.Rounds, v.RatioUpper = test.rounds, test.upper
		table := libraryTable(&record{Library: &libraryStudy{Values: []beside{v}}})
		if !strings.Contains(table, test.want) || strings.Contains(table, "with the quartiles") != (test.rounds == 7) {
			t.Errorf("%d rounds: no %q in\n%s", test.rounds, test.want, table)
		}
	}
}

// TestApart: of figures whose quartiles are as far apart as that allows, the interval of the median is as wide as it
// may be. The more there are, the further apart the quartiles may be.
func TestApart(t *testing.T) {
	for n, want := range map[int]float64{1: 1.063, 5: 1.147, 7: 1.176, 13: 1.247, 15: 1.268, 24: 1.350, 100: 1.846} {
		if got := apart(n); math.Abs(got-want) > 0.001 {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
}
