package main

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// TestOutside compares the interval with the binomial distribution, summed up in another way.
func TestOutside(t *testing.T) {
	for n := 1; n <= 60; n++ {
		misses := func(off int) float64 { // how often an interval without off values on each side misses the median
			ways, row := 0.0, []float64{1}
			for range n {
				next := make([]float64, len(row)+1)
				for i, x := range row {
					next[i] += x
					next[i+1] += x
				}
				row = next
			}
			for i := range off + 1 {
				ways += row[i]
			}
			return 2 * ways / math.Pow(2, float64(n))
		}
		off, ok := outside(n)
		switch {
		case ok != (misses(0) <= 0.05):
			t.Errorf("%d values: %v, and the widest interval misses in %.3f", n, ok, misses(0))
		case ok && (misses(off) > 0.05 || misses(off+1) <= 0.05):
			t.Errorf("%d values: without %d it misses in %.3f, without one more in %.3f",
				n, off, misses(off), misses(off+1))
		}
	}
	if off, ok := outside(10); off != 1 || !ok {
		t.Errorf("of ten values %d are left out on each side", off)
	}
}

// TestVerdict: the interval has 1.00 in it, or ends at 1.03 or less.
func TestVerdict(t *testing.T) {
	ten := func(low, high float64) []float64 { // the two outermost values do not count
		return []float64{9, high, low, 0.1, high, low, low, high, low, high}
	}
	for _, c := range []struct {
		pairs []float64
		want  string
	}{
		{ten(0.80, 0.90), "0.850 0.800 - 0.900 holds"},
		{ten(0.95, 1.20), "1.075 0.950 - 1.200 holds"},
		{ten(1.01, 1.03), "1.020 1.010 - 1.030 holds"},
		{ten(1.01, 1.04), "1.025 1.010 - 1.040 SLOWER"},
		{ten(1.00, 1.50), "1.250 1.000 - 1.500 holds"},
		{[]float64{2, 2, 2, 2, 2}, "2.000 2.000 - 2.000 too few pairs"},
		{[]float64{2, 2, 2, 2, 2, 2}, "2.000 2.000 - 2.000 SLOWER"},
	} {
		if got := strings.Join(newRatio(c.pairs).cells(), " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.pairs, got, c.want)
		}
	}
}

// TestTurns: each revision is first in every other pair, and the ratio of a pair is that of its own two runs.
func TestTurns(t *testing.T) {
	var order []string
	n := 0.0
	revision := func(name string, factor float64) func() (result, error) {
		return func() (result, error) {
			order = append(order, name)
			var r result
			r.CPU = factor * (n + 1)
			return r, nil
		}
	}
	var p pairs
	for turn := range 8 {
		if err := p.add(turn, revision("then", 1), revision("now", 1.5)); err != nil {
			t.Fatal(err)
		}
		n = float64(turn % 3)
	}
	if got := strings.Join(order[:8], " "); got != "then now now then then now now then" {
		t.Errorf("run in the order %s", got)
	}
	then, now, r := p.compare(cpu)
	if then != 1.5 || now != 2.25 || r.low != 1.5 || r.high != 1.5 {
		t.Errorf("%v, %v, %+v", then, now, r)
	}
	broken := errors.New("broken")
	fails := func() (result, error) { return result{}, broken }
	for turn := range 2 {
		if err := p.add(turn, fails, revision("now", 1)); !errors.Is(err, broken) {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// TestParse: a run has one result with all figures that the work compares.
func TestParse(t *testing.T) {
	all := works()
	i := slices.IndexFunc(all, func(w work) bool { return w.name == "Send 64, events" })
	full := result{MsgRate: 2}
	full.CPU, full.CPULat, full.Typical, full.P99 = 0.5, 7, 6, 9
	lacks := full
	lacks.P99 = 0
	encoded := func(results ...result) []byte {
		var r perf.Report
		for _, f := range results {
			r.Results = append(r.Results, perf.Result{Op: perf.Send, Size: 64, Figures: f})
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	got, err := parse(encoded(full), all[i])
	if err != nil || got != full {
		t.Errorf("%+v, %v", got, err)
	}
	var figures []float64
	for _, q := range all[i].of {
		figures = append(figures, q.of(got))
	}
	if want := []float64{0.5, 0.5, 6, 9, 7}; !slices.Equal(figures, want) {
		t.Errorf("figures %v, want %v", figures, want)
	}
	for name, out := range map[string][]byte{
		"none": encoded(), "two": encoded(full, full), "no 99 %": encoded(lacks), "no JSON": []byte("Send"),
	} {
		if got, err := parse(out, all[i]); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	i = slices.IndexFunc(all, func(w work) bool { return w.name == "Write 1 MiB, polling" })
	if _, err := parse(encoded(lacks), all[i]); err != nil {
		t.Errorf("a work that compares no 99 %%: %v", err)
	}
}

// TestWanted: works are asked for by name, and the polling ones poll.
func TestWanted(t *testing.T) {
	got, err := (&perfCmd{Work: []string{"Write 1 MiB, polling"}}).wanted()
	if err != nil || len(got) != 1 || strings.Join(got[0].args, " ") != "--op Write --size 1M --poll" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := (&perfCmd{}).wanted(); err != nil || len(got) != 6 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := (&perfCmd{Work: []string{"Read"}}).wanted(); err == nil {
		t.Error("there is no such work")
	}
}
