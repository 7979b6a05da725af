package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestFloors: each belongs to a goal, and no two to the same.
func TestFloors(t *testing.T) {
	ccs := []string{"bbr", "reno"}
	goals := make(map[string]bool)
	for _, tr := range trials(ccs) {
		for _, g := range tr.goals {
			goals[g.Work+g.CC+g.Quantity] = true
		}
	}
	seen := make(map[string]bool)
	for _, tr := range floors(ccs) {
		for _, g := range tr.goals {
			key := g.Work + g.CC + g.Quantity
			if !goals[key] || seen[key] {
				t.Errorf("%+v, a goal: %t, seen: %t", g, goals[key], seen[key])
			}
			seen[key] = true
		}
	}
}

// TestBareLoop: all that is sent is received and copied, with the CRC and without.
func TestBareLoop(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("%s is not asked for a congestion control", runtime.GOOS)
	}
	for _, crc := range []bool{true, false} {
		r, err := bareLoop(t.Context(), "reno", crc, 20*time.Millisecond)
		testrig.Must(t, err)
		if r.rate <= 0 || r.cpu <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestPolledFloor compares two runs of plain TCP.
func TestPolledFloor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", loopback+":0")
	testrig.Must(t, err)
	defer ln.Close()
	go func() { _ = perf.Serve(ctx, ln, nil) }()
	b := newBeside("64 B Read", "", perf.Options{Ops: []perf.Op{perf.Read}, Sizes: []int{64}})
	b.opts.Duration, b.opts.Iters = 0, 200
	ratios, err := polledFloor(b).run(ctx, &own{responder: &subprocess.Process{Addr: ln.Addr().String()}})
	if err != nil || len(ratios) != 1 || ratios[0] <= 0 {
		t.Errorf("%v, %v", ratios, err)
	}
}
