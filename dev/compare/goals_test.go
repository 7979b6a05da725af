package main

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestVerdict judges the median, and says if a quartile is on the other side: or, if another run would find another
// median, that this says nothing. Of fewer than four rounds there is a median alone.
func TestVerdict(t *testing.T) {
	most, least := goal{Wanted: 1.2, AtMost: true}, goal{Wanted: 5}
	for _, test := range []struct {
		goal
		found spreadOf
		want  string
	}{
		{most, spreadOf{1.1, 1.0, 1.15}, "met"},
		{most, spreadOf{1.2, 1.1, 1.2}, "met"},
		{most, spreadOf{1.19, 1.1, 1.25}, "met in the median"},
		{most, spreadOf{1.22, 1.1, 1.25}, "missed in the median"},
		{most, spreadOf{1.1, 1.0, 1.3}, "inconclusive"},
		{most, spreadOf{1.25, 1.1, 1.3}, "inconclusive"},
		{most, spreadOf{1.4, 1.3, 1.5}, "missed"},
		{most, spreadOf{1.4, 1.3, 2.5}, "missed"},
		{least, spreadOf{6, 5.5, 7}, "met"},
		{least, spreadOf{5, 5, 6}, "met"},
		{least, spreadOf{5.2, 4.9, 5.5}, "met in the median"},
		{least, spreadOf{4.8, 4.7, 5.1}, "missed in the median"},
		{least, spreadOf{6, 4, 7}, "inconclusive"},
		{least, spreadOf{4, 3, 7}, "inconclusive"},
		{least, spreadOf{2, 1, 3}, "missed"},
		{least, spreadOf{}, "not measured"},
		{most, spreadOf{}, "not measured"},
	} {
		if got := (goalValue{test.goal, 7, test.found}).verdict(); got != test.want {
			t.Errorf("%+v of %+v is %q, want %q", test.found, test.goal, got, test.want)
		}
		if got := (goalValue{test.goal, 3, test.found}).verdict(); test.found != (spreadOf{}) &&
			!strings.HasSuffix(got, " in the median") {
			t.Errorf("%+v of three rounds is %q", test.found, got)
		}
	}
}

// TestGoalsTable has a row for each.
func TestGoalsTable(t *testing.T) {
	got := goalsTable(&record{
		Growth: growth{Connections: []connections{{Count: 100, PerEnd: 1 << 20}, {Count: 5000, PerEnd: 8 << 10}}},
		Short: []shortResult{{Rate: shortFigure{Median: 20000}}, {Rate: shortFigure{Median: 9000}},
			{Rate: shortFigure{Median: 7900}}},
		Goals: []goalValue{
			{goal{"64 B Read", "reno", "latency", 1.2, true}, 7, spreadOf{1.1, 1, 1.15}},
			{goal{"1 MiB Write", "bbr", "bandwidth", 0.95, false}, 6, spreadOf{0.9, 0.85, 0.96}},
		},
		Floors: []goalValue{{goal{Work: "1 MiB Write", CC: "bbr", Quantity: "bandwidth"}, 7, spreadOf{0.97, 0.9, 1}}},
	})
	for _, want := range []string{
		"| 64 B Read | reno | latency | at most 1.20 | 1.10 (1.00 - 1.15) | met | - |\n",
		"| 1 MiB Write | bbr | bandwidth | at least 0.95 | 0.90 (0.85 - 0.96) (6 rounds) | missed in the median | 0.97 (0.90 - 1.00) |\n",
		"| 5000 idle connections |  | KiB of an end | at most 8.00 | 8.00 | met | - |\n",
		"| short connections |  | thousands in a second | at least 8.00 | 7.90 | missed | 9.00 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestTrials: each goal stands once, and what the system does not tell counts for none.
func TestTrials(t *testing.T) {
	seen := make(map[goal]bool)
	for _, tr := range trials([]string{"bbr", "reno"}) {
		if len(tr.goals) == 0 {
			t.Error("a trial of nothing")
		}
		for _, g := range tr.goals {
			if seen[g] || g.Work == "" || g.Quantity == "" || g.Wanted <= 0 {
				t.Errorf("%+v, seen: %t", g, seen[g])
			}
			seen[g] = true
		}
	}
	a, b := goal{Work: "a"}, goal{Work: "b"}
	found := make(map[goal][]float64)
	results := [][]float64{{1, 2}, {3, 0}, {math.Inf(1), math.NaN()}}
	for _, r := range results {
		tr := trial{[]goal{a, b}, func(context.Context, *own) ([]float64, error) { return r, nil }}
		testrig.Must(t, tr.turn(t.Context(), nil, found))
	}
	if len(found[a]) != 2 || len(found[b]) != 1 {
		t.Errorf("%v", found)
	}
	broken := trial{[]goal{a}, func(context.Context, *own) ([]float64, error) { return nil, errNotMeasured }}
	if err := broken.turn(t.Context(), nil, found); !errors.Is(err, errNotMeasured) {
		t.Errorf("got %v", err)
	}
}

// TestBeside: a run of package perf tells of as many goals as it has.
func TestBeside(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", loopback+":0")
	testrig.Must(t, err)
	defer ln.Close()
	go func() { _ = perf.Serve(ctx, ln, nil) }()
	b := newBeside("64 B Send", "", perf.Options{Ops: []perf.Op{perf.Send}, Sizes: []int{64}})
	b.opts.Duration, b.opts.Iters = 0, 200
	b.reach("ratio_lat", 1.2)
	b.reach("ratio_bw", 5)
	ratios, err := b.trial().run(ctx, &own{responder: &subprocess.Process{Addr: ln.Addr().String()}})
	if err != nil || len(ratios) != 2 || ratios[0] <= 0 || ratios[1] <= 0 {
		t.Errorf("%v, %v", ratios, err)
	}
}

// TestBusyAmong has some connections work, alone and beside others.
func TestBusyAmong(t *testing.T) {
	c, err := newCrowd(t.Context(), network.TCP)
	testrig.Must(t, err)
	defer c.close()
	if ratio, err := c.busyAmong(t.Context(), 20, time.Millisecond); err != nil || ratio <= 0 {
		t.Errorf("%v, %v", ratio, err)
	}
	if len(c.qps) != 2*busy {
		t.Errorf("%d ends are left", len(c.qps))
	}
}

// TestSegments: both ends of both transfers have the segments of an Ethernet, and FPDUs as they are to be.
func TestSegments(t *testing.T) {
	if !limitsSegments {
		t.Skipf("%s is not asked for smaller segments", runtime.GOOS)
	}
	for _, op := range perf.AllOps() {
		for _, fpdus := range []iwarp.FPDUs{iwarp.FPDUsAligned, iwarp.FPDUsLarge} {
			x, err := newTransfer(t.Context(), op, "reno", fpdus)
			testrig.Must(t, err)
			testrig.Must(t, x.move(t.Context()))
			for _, qp := range x.ends {
				s := qp.Stats()
				segments := s.EMSS == 1448 || s.EMSS == realSegment // without TCP's timestamps
				if whole := s.MULPDU == s.EMSS-6; !segments ||
					whole != (fpdus == iwarp.FPDUsAligned) || s.MULPDU < s.EMSS-6 {
					t.Errorf("%v, %v: EMSS %d, MULPDU %d", op, fpdus, s.EMSS, s.MULPDU)
				}
			}
			x.close()
		}
	}
}
