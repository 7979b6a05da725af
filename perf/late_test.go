package perf

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// slice is a sample of such round trips, in microseconds.
func slice(microseconds ...int) sample {
	x := sample{count: len(microseconds), elapsed: 10 * time.Millisecond, rtt: newHistogram()}
	for _, us := range microseconds {
		record(x.rtt, time.Duration(us)*time.Microsecond)
	}
	return x
}

// oneSlow returns n slices of so many round trips of 10 us, and a slow one in each, of 100 us and in each slice 1 us
// more. A factor multiplies all.
func oneSlow(n, others, factor int) (all []sample) {
	for i := range n {
		all = append(all, slice(append(slices.Repeat([]int{10 * factor}, others), (100+i)*factor)...))
	}
	return all
}

// readsOf sums up the latency of Reads, whose latency is the round trip.
func readsOf(iwarp, tcp []sample) Result {
	return newResult(Read, 1<<20, 16, series{streams: 1, keep: true, iwarp: iwarp, tcp: tcp},
		series{streams: 1, keep: true, iwarp: iwarp, tcp: tcp})
}

func nearly(got, want float64) bool { return got >= want*0.998 && got <= want*1.002 }

// TestLateOfFewInASlice: where a slice has 10 round trips, one slow, the slow ones are no 99th percentile: 10 % are as
// slow. That of all 400 is exceeded by 4 of them. The ratio is of groups of 10 slices, whose 100 round trips are
// exceeded by one.
func TestLateOfFewInASlice(t *testing.T) {
	got := readsOf(oneSlow(40, 9, 1), oneSlow(40, 9, 2))
	if !nearly(got.P99, 135) || !nearly(got.TCP.P99, 270) {
		t.Errorf("99 %%: %v us, and of plain TCP %v, want 135 and 270", got.P99, got.TCP.P99)
	}
	if q := got.Quartiles["ratio_p99"]; !nearly(got.RatioP99, 0.5) || !nearly(q[0], 0.5) || !nearly(q[1], 0.5) {
		t.Errorf("ratio %v, quartiles %v, want 0.5", got.RatioP99, q)
	}
	if !nearly(got.Typical, 10) || !nearly(got.RatioLat, 0.5) {
		t.Errorf("typical %v us, ratio %v, want 10 and 0.5", got.Typical, got.RatioLat)
	}
}

// TestLateOfBothSides: the slices of one side would have a 99th percentile of their own, with a median of 155 us, and
// those of the other have none. Both are made of all round trips.
func TestLateOfBothSides(t *testing.T) {
	few, many := oneSlow(40, 9, 1), make([]sample, 40)
	for i := range many { // each other slice has 2.5 % that are slow
		many[i] = slice(append(slices.Repeat([]int{10}, 195), slices.Repeat([]int{10 + i%2*290}, 5)...)...)
	}
	if got := readsOf(few, many); !nearly(got.P99, 135) || !nearly(got.TCP.P99, 300) {
		t.Errorf("99 %%: %v us, and of plain TCP %v, want 135 and 300", got.P99, got.TCP.P99)
	}
	if got := readsOf(many, few); !nearly(got.P99, 300) || !nearly(got.TCP.P99, 135) {
		t.Errorf("99 %%: %v us, and of plain TCP %v, want 300 and 135", got.P99, got.TCP.P99)
	}
	lat := series{streams: 1, iwarp: few, tcp: many}
	for i, g := range [][]sample{lat.grouped().iwarp, lat.grouped().tcp} {
		if len(g) != 4 || trips(g) != float64([]int{400, 8000}[i]) || slices.Min(values(g, sample.trips)) < 100 {
			t.Errorf("groups have %v round trips", values(g, sample.trips))
		}
	}
}

// TestLateOfManyInASlice: slices of 150 round trips have a 99th percentile of their own, and one that was disturbed
// does not decide. A slice of fewer between them is no reason for another way.
func TestLateOfManyInASlice(t *testing.T) {
	var quiet []sample
	for range 10 {
		quiet = append(quiet, slice(append(slices.Repeat([]int{10}, 146), 50, 50, 50, 50)...))
	}
	quiet[3] = slice(slices.Repeat([]int{5000}, 150)...)
	quiet[5] = slice(append(slices.Repeat([]int{10}, 86), 50, 50, 50, 50)...)
	got := readsOf(quiet, quiet)
	if !nearly(got.P99, 50) || !nearly(got.RatioP99, 1) || got.LatencyIterations != 1440 {
		t.Errorf("99 %% of %d: %v us, ratio %v, want 50 and 1", got.LatencyIterations, got.P99, got.RatioP99)
	}
	lat := series{iwarp: quiet, tcp: quiet}
	if g := lat.grouped(); len(g.iwarp) != 9 || len(g.tcp) != 9 {
		t.Errorf("%d and %d groups of 10 pairs, one with 90 round trips, want 9", len(g.iwarp), len(g.tcp))
	}
}

// TestLateOfTheLast: the last slice has too few round trips for a 99th percentile, and no other follows it. It is put
// to the one before.
func TestLateOfTheLast(t *testing.T) {
	all := append(oneSlow(3, 99, 1), oneSlow(1, 89, 1)...)
	lat := series{iwarp: all, tcp: all}
	for side, g := range map[string][]sample{"iwarp": lat.grouped().iwarp, "plain TCP": lat.grouped().tcp} {
		if got := values(g, sample.trips); !slices.Equal(got, []float64{100, 100, 190}) {
			t.Errorf("%s: groups have %v round trips, want 100, 100 and 190", side, got)
		}
	}
}

// TestTooFewForLate: 300 round trips have a latency that 1 % exceed, and 3000 one that 0.1 % do. Fewer have none, nor a
// ratio of it; and in the JSON object it is left out.
func TestTooFewForLate(t *testing.T) {
	for _, test := range []struct {
		iwarp, tcp          int // slices of 10 round trips
		late, latest, ratio bool
	}{
		{29, 29, false, false, false},
		{30, 30, true, false, true},
		{30, 29, true, false, false},
		{29, 30, false, false, false},
		{299, 299, true, false, true},
		{300, 300, true, true, true},
	} {
		got := readsOf(oneSlow(test.iwarp, 9, 1), oneSlow(test.tcp, 9, 1))
		text, err := json.Marshal(got)
		testrig.Must(t, err)
		ours, _, _ := strings.Cut(string(text), `"tcp"`)
		for key, want := range map[string]bool{`"p99"`: test.late, `"p999"`: test.latest} {
			if strings.Contains(ours, key) != want {
				t.Errorf("of %d slices: %s is there: %v", test.iwarp, key, !want)
			}
		}
		if strings.Contains(string(text), "ratio_p99") != test.ratio {
			t.Errorf("of %d and %d slices: there is a ratio: %v", test.iwarp, test.tcp, !test.ratio)
		}
	}
	if alone := readsOf(oneSlow(30, 9, 1), nil); alone.P99 == 0 || alone.TCP != nil || alone.RatioP99 != 0 {
		t.Errorf("without plain TCP: %+v", alone)
	}
}

// TestLateIsJudged: a ratio of groups that differ is inconclusive, as that of slices is.
func TestLateIsJudged(t *testing.T) {
	var wild []sample
	for i := range 40 {
		wild = append(wild, slice(slices.Repeat([]int{10 * (1 + i/10)}, 10)...))
	}
	got := ratios(series{}, series{want: 40, iwarp: wild, tcp: oneSlow(40, 9, 1)})
	if got.RatioP99 == 0 || got.Repeats("ratio_p99") {
		t.Errorf("%+v", got)
	}
}
