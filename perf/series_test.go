package perf

import (
	"slices"
	"testing"
	"time"
)

// waited returns samples of 10 ms whose threads waited for so many per cent of that.
func waited(percent ...int) []sample {
	var all []sample
	for _, p := range percent {
		all = append(all, sample{count: 100, elapsed: 10 * time.Millisecond,
			usage: usage{Wait: time.Duration(p) * 100 * time.Microsecond}})
	}
	return all
}

func TestDisturbedPairsAreDropped(t *testing.T) {
	quiet := []int{2, 2, 3, 3, 2, 2, 3, 2, 3, 2}
	iwarp := slices.Concat([]int{30}, quiet, []int{16, 19, 100}) // 3 % and 15 % are allowed
	tcp := slices.Concat([]int{0}, quiet, []int{50, 2, 2})
	s := series{streams: 1, want: 12, iwarp: waited(iwarp...), tcp: waited(tcp...)}
	s.tcp[3].usage.Steal = 1
	k := s.kept()
	if s.disturbed() != 5 || len(k.iwarp) != 9 || len(k.tcp) != 9 {
		t.Errorf("%d of %d pairs are disturbed, %d and %d slices kept",
			s.disturbed(), len(iwarp), len(k.iwarp), len(k.tcp))
	}
	for i := range k.iwarp {
		if k.iwarp[i].waiting() > 0.03 || k.tcp[i].waiting() > 0.03 || k.tcp[i].usage.Steal > 0 {
			t.Errorf("pair %d is kept: %+v, %+v", i, k.iwarp[i].usage, k.tcp[i].usage)
		}
	}
	if s.keep = true; len(s.kept().iwarp) != len(iwarp) {
		t.Error("pairs are dropped that were to be kept")
	}
}

// TestEnough goes on until as many pairs as wanted are left, or there is no hope.
func TestEnough(t *testing.T) {
	repeat := func(n, percent int) []int { return slices.Repeat([]int{percent}, n) }
	for _, test := range []struct {
		name    string
		percent []int
		want    bool
	}{
		{"too few pairs", repeat(39, 0), false},
		{"none disturbed", repeat(40, 0), true},
		{"a quarter disturbed", append(repeat(30, 0), repeat(10, 50)...), false},
		{"a quarter disturbed, and replaced", append(repeat(40, 0), repeat(10, 50)...), true},
		{"hardly any left", append(repeat(5, 0), repeat(35, 50)...), true},
		{"twice as many tried", append(repeat(30, 0), repeat(50, 50)...), true},
	} {
		s := series{want: 40, iwarp: waited(test.percent...), tcp: waited(test.percent...)}
		if got := s.enough(len(test.percent)); got != test.want {
			t.Errorf("%s: enough is %v", test.name, got)
		}
	}
}

func TestInconclusive(t *testing.T) {
	steady, wild := make([]float64, 40), make([]float64, 40)
	for i := range steady {
		steady[i] = 1 + float64(i)/1000
		wild[i] = 1 + float64(i)/10
	}
	for _, test := range []struct {
		name  string
		pairs []float64
		ok    bool
	}{
		{"steady", steady, true},
		{"wild", wild, false},
		{"few are left, and steady", steady[:5], true},
		{"few are left, and wild", wild[:5], false},
	} {
		if got := repeatable(test.pairs); got != test.ok {
			t.Errorf("%s: repeatable is %v", test.name, got)
		}
	}
	var r Ratios
	r.compare("ratio_bw", series{want: 40, iwarp: lasting(wild...), tcp: lasting(steady...)}, sample.rate)
	if q := r.Quartiles["ratio_bw"]; r.Repeats("ratio_bw") || q[0] <= 0 || r.RatioBW <= q[0] || q[1] <= r.RatioBW {
		t.Errorf("of pairs that differ: %+v; want a ratio within its quartiles, and inconclusive", r)
	}
	if low, high := confidence(steady); low != steady[13] || high != steady[26] {
		t.Errorf("the median of 40 lies between %v and %v, want the 14th and the 27th: %v, %v",
			low, high, steady[13], steady[26])
	}
}

// TestTooFewUndisturbed: where nearly all pairs are disturbed, what the rest of them say is inconclusive, however much
// they agree. The CPU time of a message is compared over all pairs.
func TestTooFewUndisturbed(t *testing.T) {
	for _, test := range []struct {
		left int
		want []string
	}{
		{2, []string{"ratio_bw"}},
		{4, []string{"ratio_bw"}},
		{5, nil},
	} {
		x := waited(slices.Repeat([]int{2}, 40)...)
		for i := range x {
			x[i].usage.CPU = time.Millisecond
			if i >= test.left {
				x[i].usage.Steal = 1
			}
		}
		r := newResult(Send, 64, 128, series{streams: 1, want: 40, iwarp: x, tcp: x}, series{})
		if !slices.Equal(r.Inconclusive, test.want) || r.RatioBW != 1 || r.RatioCPU != 1 {
			t.Errorf("%d of 40 pairs are left: inconclusive: %v; ratios %v and %v of CPU",
				test.left, r.Inconclusive, r.RatioBW, r.RatioCPU)
		}
		if r.BWDropped != 40-test.left || r.Scarce(Bandwidth) != (test.want != nil) || r.BWAverage == 0 {
			t.Errorf("%d of 40 pairs are left: %d dropped, scarce %v, bandwidth %v",
				test.left, r.BWDropped, r.Scarce(Bandwidth), r.BWAverage)
		}
	}
}

// lasting returns slices of a message that took so many seconds.
func lasting(seconds ...float64) (all []sample) {
	for _, x := range seconds {
		all = append(all, sample{count: 1, elapsed: time.Duration(x * float64(time.Second))})
	}
	return all
}

// TestRatioText has the mark of a ratio that another run would not repeat.
func TestRatioText(t *testing.T) {
	r := Ratios{RatioBW: 1.25, RatioLat: 0.5, Inconclusive: []string{"ratio_lat"},
		Quartiles: map[string][2]float64{"ratio_bw": {1, 2}, "ratio_lat": {0.25, 0.75}}}
	for key, want := range map[string]string{
		"ratio_bw": "1.25 1.00-2.00", "ratio_lat": "~0.50 0.25-0.75", "ratio_cpu": "-",
	} {
		if got := r.Text(key, "%.2f %.2f-%.2f"); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
