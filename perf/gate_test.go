package perf_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/child"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// A gate is a figure of iWARP, divided by that of plain TCP in the same run, which a change
// must not raise by more than a half. Times are none of them: they say more of the machine.
type gate struct {
	op    perf.Op
	size  int
	name  string
	usual float64 // what it was when somebody last looked
	key   string  // of the ratio in Inconclusive; empty for what is counted, and so steady
	of    func(perf.Result) float64
}

// room is how much more than usual is let pass.
const room = 1.5

func gates() []gate {
	over := func(of func(*perf.Figures) float64) func(perf.Result) float64 {
		return func(r perf.Result) float64 {
			if tcp := of(r.TCP); tcp > 0 {
				return of(&r.Figures) / tcp
			}
			return 0
		}
	}
	cpu := func(r perf.Result) float64 { return r.RatioCPU }
	cpuLat := func(r perf.Result) float64 { return r.RatioCPULat }
	calls := over(func(f *perf.Figures) float64 { return f.Calls })
	callsLat := over(func(f *perf.Figures) float64 { return f.CallsLat })
	switchesLat := over(func(f *perf.Figures) float64 { return f.SwitchesLat })
	return []gate{
		{perf.Send, 64, "CPU for a message, bandwidth", 0.6, "ratio_cpu", cpu},
		{perf.Send, 64, "system calls for a message, bandwidth", 0.15, "", calls},
		{perf.Send, 64, "CPU for a message, latency", 1.3, "ratio_cpu_lat", cpuLat},
		{perf.Send, 64, "system calls for a message, latency", 1.2, "", callsLat},
		{perf.Send, 64, "context switches for a message, latency", 1.2, "", switchesLat},
		{perf.Write, 64 << 10, "CPU for a message, latency", 1.8, "ratio_cpu_lat", cpuLat},
		{perf.Write, 64 << 10, "system calls for a message, latency", 1.3, "", callsLat},
		{perf.Write, 64 << 10, "context switches for a message, latency", 1.5, "", switchesLat},
		{perf.Write, 1 << 20, "CPU for a message, bandwidth", 1.4, "ratio_cpu", cpu},
		{perf.Write, 1 << 20, "system calls for a message, bandwidth", 2.6, "", calls},
		{perf.Read, 1 << 20, "CPU for a message, bandwidth", 1.45, "ratio_cpu", cpu},
	}
}

// A verdict is what a result says of a gate.
type verdict string

const (
	passes       verdict = "passes"
	fails        verdict = "fails"
	inconclusive verdict = "inconclusive: machine busy"
	untold       verdict = "not told by this system"
)

// judge says what a result has of a gate, and prints it. What is inconclusive passes or fails
// all the same if both quartiles would.
func (g gate) judge(r perf.Result) (verdict, string) {
	limit := g.usual * room
	if slices.Contains(r.Inconclusive, g.key) {
		q := r.Quartiles[g.key]
		of := fmt.Sprintf("%.2f to %.2f", q[0], q[1])
		switch {
		case q[0] > limit:
			return fails, of
		case q[1] <= limit:
			return passes, of
		}
		return inconclusive, of
	}
	x := g.of(r)
	switch {
	case x == 0:
		return untold, "-"
	case x > limit:
		return fails, fmt.Sprintf("%.2f", x)
	}
	return passes, fmt.Sprintf("%.2f", x)
}

// attempts is in how many runs in succession a gate must be failed: a busy machine may
// spoil one.
const attempts = 3

// TestGate is the gate of .ci/run, which asks for it by IWARP_GATE.
func TestGate(t *testing.T) {
	if os.Getenv("IWARP_GATE") == "" {
		t.Skip("IWARP_GATE is not set: this takes a quarter of a minute, and a machine that does nothing else")
	}
	addr := otherProcess(t)
	failed := gates()
	for range attempts {
		failed = try(t, addr, failed)
	}
	for _, g := range failed {
		t.Errorf("%v of %d octets: %s is more than %.1f times what it was, in %d runs", g.op, g.size, g.name, room, attempts)
	}
}

// otherProcess runs TestOtherProcess in a process of its own, and returns its address.
func otherProcess(t *testing.T) string {
	t.Helper()
	t.Setenv("IWARP_GATE", "responder")
	p, err := child.Start(t.Context(), os.Stderr, "-test.run=^TestOtherProcess$")
	testrig.Must(t, err)
	t.Cleanup(p.Stop)
	return p.Addr
}

// TestOtherProcess is no test, but the responder of one. It ends with its standard input.
func TestOtherProcess(t *testing.T) {
	if os.Getenv("IWARP_GATE") != "responder" {
		t.Skip("this is the responder of TestGate")
	}
	ctx, cancel := child.UntilEOF(t.Context())
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	child.Announce(os.Stdout, ln.Addr())
	testrig.Must(t, perf.Serve(ctx, ln, nil))
}

// try measures what the gates need, and returns those that are failed.
func try(t *testing.T, addr string, all []gate) (failed []gate) {
	results := make(map[string]perf.Result)
	for _, g := range all {
		key := fmt.Sprint(g.op, g.size)
		if _, ok := results[key]; !ok {
			report, err := perf.RunTwo(t.Context(), addr, perf.Options{Ops: []perf.Op{g.op}, Sizes: []int{g.size}}, perf.Observer{})
			testrig.Must(t, err)
			results[key] = report.Results[0]
		}
		v, x := g.judge(results[key])
		t.Logf("%-5v %7d  %-42s %12s of TCP's, usually %.2f: %s", g.op, g.size, g.name, x, g.usual, v)
		if v == fails {
			failed = append(failed, g)
		}
	}
	return failed
}

func quartiles(lower, upper float64) map[string][2]float64 {
	return map[string][2]float64{"ratio_cpu": {lower, upper}}
}

// TestGateJudges has a gate say each of its verdicts.
func TestGateJudges(t *testing.T) {
	g := gate{usual: 2, key: "ratio_cpu", of: func(r perf.Result) float64 { return r.RatioCPU }}
	for _, test := range []struct {
		ratios perf.Ratios
		want   verdict
	}{
		{perf.Ratios{RatioCPU: 2.9}, passes},
		{perf.Ratios{RatioCPU: 3.1}, fails},
		{perf.Ratios{}, untold},
		{perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(2.9, 3.1)}, inconclusive},
		{perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(1.5, 2.9)}, passes},
		{perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(3.1, 5)}, fails},
		{perf.Ratios{RatioCPU: 3.1, Inconclusive: []string{"ratio_bw"}}, fails},
	} {
		if got, _ := g.judge(perf.Result{Ratios: test.ratios}); got != test.want {
			t.Errorf("%+v: %s, want %s", test.ratios, got, test.want)
		}
	}
}
