package perf

import (
	"testing"
	"time"
)

// TestCut cuts the time for a quantity over paths with a longer and longer round trip: slices become longer first, then
// fewer, and then it takes longer than was asked for, three times as long at most.
func TestCut(t *testing.T) {
	const ms, second = time.Millisecond, time.Second
	for _, test := range []struct {
		duration, trip time.Duration
		bandwidth      cut
		latency        cut
	}{
		{400 * ms, 0, cut{40, 10 * ms}, cut{40, 10 * ms}},
		{400 * ms, ms / 20, cut{40, 10 * ms}, cut{40, 10 * ms}},
		{400 * ms, ms / 2, cut{40, 10 * ms}, cut{40, 10 * ms}},
		{400 * ms, ms, cut{20, 20 * ms}, cut{40, 10 * ms}},
		{400 * ms, 5 * ms, cut{4, 100 * ms}, cut{20, 20 * ms}},
		{400 * ms, 20 * ms, cut{3, 400 * ms}, cut{5, 80 * ms}},
		{400 * ms, 100 * ms, cut{3, 400 * ms}, cut{3, 400 * ms}},
		{100 * ms, 20 * ms, cut{3, 100 * ms}, cut{3, 80 * ms}},
		{second, 20 * ms, cut{3, 400 * ms}, cut{12, second / 12}},
		{4 * second, 20 * ms, cut{10, 400 * ms}, cut{50, 80 * ms}},
		{4 * second, ms / 2, cut{100, 40 * ms}, cut{100, 40 * ms}},
		{time.Minute, ms, cut{100, 600 * ms}, cut{100, 600 * ms}},
		{ms, ms / 20, cut{5, ms / 5}, cut{5, ms / 5}},
	} {
		o := Options{Duration: test.duration}
		if got := o.cut(Bandwidth, test.trip); got != test.bandwidth {
			t.Errorf("bandwidth for %v over %v: %+v, want %+v", test.duration, test.trip, got, test.bandwidth)
		}
		if got := o.cut(Latency, test.trip); got != test.latency {
			t.Errorf("latency for %v over %v: %+v, want %+v", test.duration, test.trip, got, test.latency)
		}
	}
}

// TestCutCounted: messages that are counted stand in few slices over a path with a long round trip, of which each has
// one.
func TestCutCounted(t *testing.T) {
	m := measurement{opts: Options{Iters: 1000}}
	for trip, want := range map[time.Duration][2]int{0: {25, 40}, 20 * time.Millisecond: {3, 334}} {
		c := m.opts.cut(Bandwidth, trip)
		if each := m.firstCount(job{}, c.pairs); c.pairs != want[0] || each != want[1] {
			t.Errorf("over %v: %d slices of %d messages, want %d", trip, c.pairs, each, want)
		}
		if c := m.opts.cut(Latency, trip); c.pairs != 25 {
			t.Errorf("latency over %v: %d slices", trip, c.pairs)
		}
	}
}

// TestLongEnough: for such a time slices of bandwidth are 20 round trips long.
func TestLongEnough(t *testing.T) {
	for _, trip := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 20 * time.Millisecond,
		333 * time.Millisecond, 3 * time.Second} {
		d := LongEnough(trip)
		if c := (Options{Duration: d}).cut(Bandwidth, trip); c.slice < bandwidthTrips*trip ||
			d > bandwidthTrips*trip+100*time.Millisecond {
			t.Errorf("%v for a round trip of %v: %+v", d, trip, c)
		}
	}
}

// TestEnoughTime: what disturbed pairs are replaced by, and slices that take longer than they were to, end with the
// time.
func TestEnoughTime(t *testing.T) {
	const ms = time.Millisecond
	disturbed := func(n int, each time.Duration) (all []sample) {
		for i := range n {
			all = append(all, sample{count: 2, elapsed: each, usage: usage{Wait: time.Duration(i%2) * each / 2}})
		}
		return all
	}
	o := Options{Duration: 400 * ms}
	bound := o.bound(o.cut(Bandwidth, 0), 2)
	for _, test := range []struct {
		name       string
		rounds     int
		each, took time.Duration
		want       bool
	}{
		{"half disturbed, and replaced", 60, 10 * ms, 1100 * ms, false},
		{"half disturbed, and no more time", 60, 10 * ms, 1200 * ms, true},
		{"long ones", 10, 120 * ms, 2400 * ms, true},
		{"very long ones", 4, time.Second, 8 * time.Second, false},
		{"five of those", 5, time.Second, 10 * time.Second, true},
	} {
		x := disturbed(test.rounds, test.each)
		s := series{want: 40, iwarp: x, tcp: x, took: test.took, bound: bound}
		if got := s.enough(test.rounds); got != test.want {
			t.Errorf("%s: enough is %v after %v of %v", test.name, got, test.took, bound)
		}
	}
	if b := (Options{Iters: 10, Duration: ms}).bound(cut{}, 2); b != 0 {
		t.Errorf("messages are counted, and may take %v", b)
	}
	if b := o.bound(o.cut(Bandwidth, 50*ms), 2); b != 2400*ms {
		t.Errorf("over a long path a quantity may take %v, want three times what was asked for", b)
	}
}

// TestShortSlices: a bandwidth is told from one that is made of round trips, by the transport whose slices were
// shorter.
func TestShortSlices(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		iwarp, tcp []sample
		trip       time.Duration
		want       Trips
	}{
		{samples(400*ms, 400*ms), nil, 20 * ms, Trips{20000, 20, false}},
		{samples(200*ms, 400*ms), samples(200*ms, 200*ms), 20 * ms, Trips{20000, 10, false}},
		{samples(400*ms, 400*ms), samples(100*ms, 200*ms), 20 * ms, Trips{20000, 7.5, true}},
		{samples(40 * ms), samples(400 * ms), 20 * ms, Trips{20000, 2, true}},
		{samples(40 * ms), nil, 0, Trips{}},
	} {
		if got := countTrips(series{trip: test.trip, iwarp: test.iwarp, tcp: test.tcp}); got != test.want {
			t.Errorf("over %v: %+v, want %+v", test.trip, got, test.want)
		}
	}
}

// TestSettled: over a long path a warm-up goes on while the rate grows, but no longer than what counts. Over a short
// one it does not wait for that.
func TestSettled(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name   string
		long   bool
		counts []int // messages of slices of 100 ms
		want   int   // slices until it has settled; 0 if it has not
	}{
		{"short", false, []int{100, 200, 400}, 2},
		{"long, settled", true, []int{100, 105, 400}, 2},
		{"long, growing", true, []int{100, 200, 400, 420}, 4},
		{"long, slower again", true, []int{100, 200, 150}, 3},
		{"long, growing on", true, []int{100, 200, 400, 800, 1600, 3200}, 5},
		{"long, one slice", true, []int{100}, 0},
	} {
		w, got := warming{cut: cut{5, 100 * ms}, long: test.long}, 0
		for i, n := range test.counts {
			if w.settled(sample{count: n, elapsed: 100 * ms}, 1000, false) {
				got = i + 1
				break
			}
		}
		if got != test.want {
			t.Errorf("%s: settled after %d slices, want %d", test.name, got, test.want)
		}
	}
}
