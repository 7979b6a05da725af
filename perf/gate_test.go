package perf_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// A gate is a figure of iWARP, which a change must not raise by more than a half: its processor time divided by that of
// plain TCP in the same run, or what is counted of it, system calls and context switches for a message. These are
// iWARP's own, as plain TCP's differ more from run to run. Times are none of them: they say more of the machine. Nor are
// the system calls of a lone message: a wait looks at the socket until the peer answers, which takes 4 to 14 calls.
type gate struct {
	op    perf.Op
	size  int
	name  string
	usual float64 // what it is on a machine that does nothing else, see usually
	key   string  // of the ratio in Inconclusive; empty for what is counted
	of    func(perf.Result) float64
}

// room is how much more than usual is let pass. On a machine that has other work what is counted may be twice that, as
// fewer messages leave together then; and a ratio says nothing of a change.
const (
	room     = 1.5
	roomBusy = 2 * room
)

// usually returns what is usual on an AMD EPYC, or on an Intel Xeon, where plain TCP takes half the time for a short
// message, and iWARP, most of whose work is not in the system, does not.
func usually(epyc, xeon float64) float64 {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if bytes.Contains(info, []byte("GenuineIntel")) {
		return xeon
	}
	return epyc
}

func gates() []gate {
	cpu := func(r perf.Result) float64 { return r.RatioCPU }
	cpuLat := func(r perf.Result) float64 { return r.RatioCPULat }
	calls := func(r perf.Result) float64 { return r.Calls }
	switchesLat := func(r perf.Result) float64 { return r.SwitchesLat }
	return []gate{
		{perf.Send, 64, "CPU for a message, bandwidth", usually(0.13, 0.34), "ratio_cpu", cpu},
		{perf.Send, 64, "system calls for a message, bandwidth", 0.08, "", calls},
		{perf.Send, 64, "CPU for a message, latency", 1.0, "ratio_cpu_lat", cpuLat},
		{perf.Send, 64, "context switches for a message, latency", 0.75, "", switchesLat},
		{perf.Write, 64 << 10, "CPU for a message, latency", 1.5, "ratio_cpu_lat", cpuLat},
		{perf.Write, 64 << 10, "context switches for a message, latency", 1.4, "", switchesLat},
		{perf.Write, 1 << 20, "CPU for a message, bandwidth", 1.6, "ratio_cpu", cpu},
		{perf.Write, 1 << 20, "system calls for a message, bandwidth", 32, "", calls},
		{perf.Read, 1 << 20, "CPU for a message, bandwidth", 1.55, "ratio_cpu", cpu},
		{perf.Read, 1 << 20, "system calls for a message, bandwidth", 37, "", calls},
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

// judge says what a result has of a gate, and prints it; busy is whether the machine had other work meanwhile. A ratio
// that is inconclusive does not fail, whatever its quartiles are. It passes if both would.
func (g gate) judge(r perf.Result, busy bool) (verdict, string) {
	limit, x := g.usual*room, g.of(r)
	switch {
	case slices.Contains(r.Inconclusive, g.key):
		q := r.Quartiles[g.key]
		return wordOf(q[1] <= limit), fmt.Sprintf("%.2f to %.2f", q[0], q[1])
	case x == 0:
		return untold, "-"
	}
	return g.within(x, limit, busy), fmt.Sprintf("%.2f", x)
}

// wordOf is the verdict on a ratio that is inconclusive.
func wordOf(passed bool) verdict {
	if passed {
		return passes
	}
	return inconclusive
}

// within judges a figure.
func (g gate) within(x, limit float64, busy bool) verdict {
	switch {
	case x <= limit:
		return passes
	case busy && (g.key != "" || x <= g.usual*roomBusy):
		return inconclusive
	}
	return fails
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
		t.Errorf("%v of %d bytes: %s is more than %.1f times what is usual, in %d runs",
			g.op, g.size, g.name, room, attempts)
	}
}

// otherProcess runs TestOtherProcess in a process of its own, and returns its address.
func otherProcess(t *testing.T) string {
	t.Helper()
	t.Setenv("IWARP_GATE", "responder")
	p, err := subprocess.Start(t.Context(), os.Stderr, "-test.run=^TestOtherProcess$")
	testrig.Must(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	return p.Addr
}

// TestOtherProcess is no test, but the responder of one. It ends with its standard input.
func TestOtherProcess(t *testing.T) {
	if os.Getenv("IWARP_GATE") != "responder" {
		t.Skip("this is the responder of TestGate")
	}
	ctx, cancel := subprocess.UntilEOF(t.Context())
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	subprocess.Announce(os.Stdout, ln.Addr())
	testrig.Must(t, perf.Serve(ctx, ln, nil))
}

// try measures what the gates need, and returns those that are failed.
func try(t *testing.T, addr string, all []gate) (failed []gate) {
	runs := make(map[string]gateRun)
	for _, g := range all {
		key := fmt.Sprint(g.op, g.size)
		if _, ok := runs[key]; !ok {
			runs[key] = g.run(t, addr)
		}
		run := runs[key]
		v, x := g.judge(run.result, run.others > busyFrom)
		t.Logf("%-5v %7d  %-42s %12s, usually %.2f; others had %2.0f %% of the processors: %s",
			g.op, g.size, g.name, x, g.usual, 100*run.others, v)
		if v == fails {
			failed = append(failed, g)
		}
	}
	return failed
}

// A gateRun is what was measured, and what part of the processors' time others had meanwhile.
type gateRun struct {
	result perf.Result
	others float64
}

// run measures what the gate needs. Under reno plain TCP takes about the same processor time in each run; under bbr it
// does not.
func (g gate) run(t *testing.T, addr string) (run gateRun) {
	t.Helper()
	opts := perf.Options{Ops: []perf.Op{g.op}, Sizes: []int{g.size}, Duration: 400 * time.Millisecond}
	if runtime.GOOS == "linux" {
		opts.CC = "reno"
	}
	before := processors()
	report, err := perf.RunTwo(t.Context(), addr, opts, perf.Observer{})
	testrig.Must(t, err)
	return gateRun{report.Results[0], processors().share(before)}
}

func quartiles(lower, upper float64) map[string][2]float64 {
	return map[string][2]float64{"ratio_cpu": {lower, upper}}
}

// TestGateJudges has a gate say each of its verdicts.
func TestGateJudges(t *testing.T) {
	ratio := gate{usual: 2, key: "ratio_cpu", of: func(r perf.Result) float64 { return r.RatioCPU }}
	counted := gate{usual: 2, of: func(r perf.Result) float64 { return r.Calls }}
	calls := func(n float64) perf.Result { return perf.Result{Figures: perf.Figures{Costs: perf.Costs{Calls: n}}} }
	ratios := func(r perf.Ratios) perf.Result { return perf.Result{Ratios: r} }
	for _, test := range []struct {
		gate   gate
		result perf.Result
		quiet  verdict
		busy   verdict
	}{
		{ratio, ratios(perf.Ratios{RatioCPU: 2.9}), passes, passes},
		{ratio, ratios(perf.Ratios{RatioCPU: 3.1}), fails, inconclusive},
		{ratio, ratios(perf.Ratios{RatioCPU: 31}), fails, inconclusive},
		{ratio, ratios(perf.Ratios{}), untold, untold},
		{ratio, ratios(perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(2.9, 3.1)}),
			inconclusive, inconclusive},
		{ratio, ratios(perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(1.5, 2.9)}), passes,
			passes},
		{ratio, ratios(perf.Ratios{Inconclusive: []string{"ratio_cpu"}, Quartiles: quartiles(3.1, 5)}),
			inconclusive, inconclusive},
		{ratio, ratios(perf.Ratios{RatioCPU: 3.1, Inconclusive: []string{"ratio_bw"}}), fails, inconclusive},
		{counted, calls(2.9), passes, passes},
		{counted, calls(4), fails, inconclusive},
		{counted, calls(6.1), fails, fails},
		{counted, calls(0), untold, untold},
	} {
		quiet, _ := test.gate.judge(test.result, false)
		busy, _ := test.gate.judge(test.result, true)
		if quiet != test.quiet || busy != test.busy {
			t.Errorf("%+v: %s, and on a busy machine %s, want %s and %s",
				test.result, quiet, busy, test.quiet, test.busy)
		}
	}
}
