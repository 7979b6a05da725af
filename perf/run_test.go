package perf_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/perf"
)

// quick are options for a run of every operation that takes no time to speak
// of: sizes below, at and beyond the sequence number's length.
func quick(sizes ...int) perf.Options {
	return perf.Options{Sizes: sizes, Duration: time.Millisecond}
}

func TestRunMovesAndVerifies(t *testing.T) {
	for _, test := range []struct {
		name string
		opts perf.Options
	}{
		{"odd sizes", quick(1, 7, 8, 9, 4097)},
		{"larger than a ring's usual share", perf.Options{Ops: []perf.Op{perf.Write}, Sizes: []int{1100000}, Duration: time.Millisecond}},
		{"depth two", perf.Options{Sizes: []int{64}, Depth: 2, Duration: time.Millisecond}},
		{"depth that credits do not divide", perf.Options{Sizes: []int{1000}, Depth: 7, Duration: time.Millisecond}},
		{"many connections", perf.Options{Sizes: []int{100}, QPs: 4, Duration: time.Millisecond}},
		{"without TCP", perf.Options{Sizes: []int{64}, NoBaseline: true, Duration: time.Millisecond}},
		{"revision 1", perf.Options{Sizes: []int{64}, Revision: 1, Duration: time.Millisecond}},
		{"markers without CRC", perf.Options{Sizes: []int{64, 100000}, Markers: true, NoCRC: true, Duration: time.Millisecond}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, err := perf.Run(t.Context(), test.opts, perf.Observer{})
			if err != nil {
				t.Fatal(err)
			}
			if want := len(report.Options.Ops) * len(test.opts.Sizes); len(report.Results) != want {
				t.Fatalf("%d results, want %d", len(report.Results), want)
			}
			for _, r := range report.Results {
				wantSane(t, r, !test.opts.NoBaseline)
			}
		})
	}
}

// wantSane checks figures for what must be true on any machine.
func wantSane(t *testing.T, r perf.Result, tcp bool) {
	t.Helper()
	figures := []perf.Figures{r.Figures}
	if (r.TCP != nil) != tcp || (r.RatioBW > 0) != tcp || (r.RatioLat > 0) != tcp {
		t.Errorf("%v %d: plain TCP measured: %v; ratios %v, %v", r.Op, r.Size, r.TCP != nil, r.RatioBW, r.RatioLat)
	}
	if tcp {
		figures = append(figures, *r.TCP)
	}
	for _, f := range figures {
		if f.MsgSize != r.Size || f.Iterations < 1 || f.LatencyIterations < 1 {
			t.Errorf("%v %d: %+v", r.Op, r.Size, f)
		}
		if f.BWPeak < f.BWAverage || f.BWAverage <= 0 || f.MsgRate <= 0 {
			t.Errorf("%v %d: bandwidth %+v", r.Op, r.Size, f)
		}
		if f.Min <= 0 || f.Min > f.Typical || f.Typical > f.P99 || f.P99 > f.P999 || f.P999 > f.Max*1.001 {
			t.Errorf("%v %d: latencies %+v", r.Op, r.Size, f)
		}
	}
}

// What is sent wrong is found where it arrives: by the initiator itself for
// Reads, and for Sends and Writes by the responder, which tells.
func TestRunFailsOnOneWrongOctet(t *testing.T) {
	for _, op := range perf.AllOps() {
		for _, size := range []int{1, 64, 4096} {
			opts := perf.Options{Ops: []perf.Op{op}, Sizes: []int{size}, Duration: time.Millisecond, Corrupt: true}
			_, err := perf.Run(t.Context(), opts, perf.Observer{})
			var wrong *perf.CorruptionError
			var told *perf.PeerError
			found := op == perf.Read && errors.As(err, &wrong) && wrong.Offset == size-1 ||
				op != perf.Read && errors.As(err, &told) && strings.Contains(told.Text, "wrong data")
			if !found {
				t.Errorf("%v of %d octets: got %v, want an error about wrong data", op, size, err)
			}
		}
	}
}

func TestObserverSeesTheRun(t *testing.T) {
	var connected int
	var results []perf.Result
	var done []float64
	report, err := perf.Run(t.Context(), quick(64, 128), perf.Observer{
		Connected: func(n perf.Negotiated) { connected++ },
		Progress:  func(p perf.Progress) { done = append(done, p.Done) },
		Result:    func(r perf.Result) { results = append(results, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if connected != 1 {
		t.Errorf("connected %d times", connected)
	}
	if diff := cmp.Diff(report.Results, results); diff != "" {
		t.Errorf("results told one by one differ from the report (-report +told):\n%s", diff)
	}
	for i := range done {
		if done[i] < 0 || done[i] >= 1 || i > 0 && done[i] < done[i-1] {
			t.Fatalf("progress goes %v", done)
		}
	}
}
