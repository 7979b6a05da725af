package oooexperiment

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestRun runs all ways over a bad path, and holds what does not depend on the machine: with markers and aligned FPDUs
// nothing is held, without aligned ones little, without markers next to nothing is placed ahead, and in order nothing.
func TestRun(t *testing.T) {
	cfg := Config{Connections: 3, Bytes: 300_000, Loss: .02, Reorder: .05,
		Delay: 200 * time.Microsecond, MTU: 1500, Seed: 3}
	for _, w := range Ways {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(testrig.Within(t), cfg, w)
			testrig.Must(t, err)
			sent := 3 * cfg.Bytes
			if w.QPs {
				// A QP's reads may end within an FPDU, which then counts as held.
				if most := 3 * r.EMSS; r.Bytes != sent || (r.Ahead > 0) != w.Ahead || r.PlacedAhead.FPDUs == 0 ||
					r.DeliveredAhead.FPDUs == 0 || r.HeldAll > most || r.TCPHeldAll == 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Bytes < sent*98/100-3*8192 || r.Placed.FPDUs != r.Delivered.FPDUs ||
				r.PlacedAhead.FPDUs != r.DeliveredAhead.FPDUs || r.Lost == 0 || r.Late == 0 {
				t.Errorf("%+v", r)
			}
			switch {
			case !w.Ahead && (r.Ahead > 0 || r.HeldAll > batch):
				t.Errorf("%.4f ahead of order, %d bytes held", r.Ahead, r.HeldAll)
			case w.Ahead && w.Markers && r.Ahead == 0:
				t.Error("nothing ahead of order")
			case w.Ahead && !w.Markers && r.HeldAll == 0:
				t.Error("nothing held, without markers")
			case w.Markers && !w.Aligned && r.HeldAll == 0:
				t.Error("nothing held of FPDUs that are cut")
			case w.Markers && w.Aligned && w.Window == 0 && r.HeldAll > 0:
				t.Errorf("%d bytes held", r.HeldAll)
			case w.Window > 0 && max(r.Held, r.TCPHeld) > w.Window+r.EMSS:
				t.Errorf("MPA has held %d bytes of one connection, and TCP %d: the window is %d",
					r.Held, r.TCPHeld, w.Window)
			case w.Window > 0 && w.Markers && r.Held > 2*r.EMSS: // the window's edge may cut an FPDU
				t.Errorf("%d bytes held of one connection", r.Held)
			}
			if r.TCPHeldAll == 0 || r.ReckonedBuffer() == 0 {
				t.Errorf("%d bytes ahead of order, reckoned %d", r.TCPHeldAll, r.ReckonedBuffer())
			}
		})
	}
}

// TestCheck refuses what cannot be run.
func TestCheck(t *testing.T) {
	good := Config{Connections: 1, Bytes: 1, MTU: 1500}
	testrig.Must(t, good.Check())
	for _, spoil := range []func(c *Config){
		func(c *Config) { c.Connections = 0 }, func(c *Config) { c.Connections = MaxConnections + 1 },
		func(c *Config) { c.Bytes = 0 }, func(c *Config) { c.Bytes = MaxBytes + 1 },
		func(c *Config) { c.Loss = -.1 }, func(c *Config) { c.Loss = 1 }, func(c *Config) { c.Reorder = 2 },
		func(c *Config) { c.Delay = -1 }, func(c *Config) { c.Delay = time.Hour }, func(c *Config) { c.MTU = 1000 },
		func(c *Config) { c.MTU = 70000 },
	} {
		c := good
		if spoil(&c); c.Check() == nil {
			t.Errorf("%+v is not refused", c)
		}
		if _, err := Run(t.Context(), c, Ways[0]); err == nil {
			t.Errorf("%+v was run", c)
		}
	}
}

// TestReckoned holds the formulae of the draft, and its example: "a 1 Gbps link with 10,000 connections and an EMSS of
// 1500B would require 15 MB of memory".
func TestReckoned(t *testing.T) {
	r := Result{Way: "not aligned, markers", Connections: 10_000, EMSS: 1500, Bytes: 125_000_000, Seconds: 1}
	r.reckon(time.Millisecond)
	if want := (Reckoned{TCP: 250_000, NotAligned: 15_001_500, Aligned: 1500}); r.Reckoned != want ||
		r.ReckonedBuffer() != want.NotAligned {
		t.Errorf("%+v", r.Reckoned)
	}
}

// TestHalf compares what is noted of arrivals with a list of bytes.
func TestHalf(t *testing.T) {
	const length = 300
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all total
		h := &half{held: &all}
		first := uint32(0xffffff80) // the numbers wrap
		h.setFirst(first)
		var came [length]time.Duration // after the first; zero: not yet
		for i := 1; i < 60; i++ {
			from := r.IntN(length)
			to := min(from+1+r.IntN(30), length)
			h.note(first+uint32(from), to-from, time.Unix(0, int64(i)))
			for k := from; k < to; k++ {
				if came[k] == 0 {
					came[k] = time.Duration(i)
				}
			}
			compare(t, h, came[:])
		}
		if all.now != h.beyond || all.most != h.most {
			t.Fatalf("%d bytes held by all, %d by the only one", all.now, h.beyond)
		}
	}
}

func compare(t *testing.T, h *half, came []time.Duration) {
	t.Helper()
	edge, beyond := 0, 0
	for edge < len(came) && came[edge] > 0 {
		edge++
	}
	for _, at := range came[edge:] {
		if at > 0 {
			beyond++
		}
	}
	if h.edge != uint64(edge) || h.beyond != beyond {
		t.Fatalf("edge %d, %d bytes beyond; want %d, %d", h.edge, h.beyond, edge, beyond)
	}
	for i, at := range came {
		last, _ := h.arrival(uint64(i), uint64(i)+1)
		if got := last.UnixNano(); at > 0 && got != int64(at) {
			t.Fatalf("byte %d came at %d, want %d", i, got, at)
		}
	}
}

// TestRunAllInterrupted ends a study in the middle: there is a report on the ways before.
func TestRunAllInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := RunAll(ctx, Config{Connections: 1, Bytes: 1 << 10, MTU: 1500}, Ways[:3], func(way string) {
		if way == Ways[1].Name {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !r.Interrupted || len(r.Results) != 1 || r.Results[0].Way != Ways[0].Name {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestJSONIsDocumented: what iwarp study --json writes is in the document about it.
func TestJSONIsDocumented(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/study-json.md", Report{})
}

// TestManyAligned: with markers, MPA holds nothing of FPDUs that lie in segments, of one connection as of hundreds at
// the same time, on a path that loses and reorders. Of those that are cut it holds some, though none of them, of six
// segments each, need be whole ahead of order. Without IWARP_ALL there are few connections.
func TestManyAligned(t *testing.T) {
	t.Parallel()
	cfg := Config{Connections: 30, Bytes: 32 << 10, Loss: .01, Reorder: .02,
		Delay: 500 * time.Microsecond, MTU: 1500, Seed: 5}
	if testrig.Everything() {
		cfg.Connections = 400
	}
	for i, w := range []Way{
		{Name: "aligned", Markers: true, Aligned: true, Ahead: true},
		{Name: "cut", Markers: true, ULPDU: 8192, Ahead: true},
	} {
		r, err := Run(t.Context(), cfg, w)
		testrig.Must(t, err)
		if (r.Held > 0 || r.HeldAll > 0) != (i == 1) || w.Aligned && r.Ahead == 0 || r.TCPHeldAll == 0 || r.Lost == 0 {
			t.Errorf("%s: %+v", w.Name, r)
		}
	}
}
