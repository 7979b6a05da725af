package iwarp_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestLeadAllocations: waiting allocates nothing, whoever receives.
func TestLeadAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ini, res := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res.postRecv(1)
	res.postRecv(1)
	go pong(ctx, res)
	ini.postRecv(1)
	turn := func() {
		ini.post(&iwarp.SendWR{Unsignaled: true})
		if _, err := ini.RecvCQ().Next(ctx); err != nil {
			t.Error(err)
		}
		ini.postRecv(1)
	}
	for range 500 {
		turn()
	}
	runtime.GC()
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// pong answers every message with an empty one.
func pong(ctx context.Context, e *end) {
	for {
		if _, err := e.RecvCQ().Next(ctx); err != nil {
			return
		}
		_ = e.PostRecv(&iwarp.RecvWR{})
		_ = e.PostSend(&iwarp.SendWR{Unsignaled: true})
	}
}

// BenchmarkPingPong: a message there and back, by consumers that wait for it.
func BenchmarkPingPong(b *testing.B) {
	ini, res := connect(b)
	ctx := b.Context()
	res.postRecv(1)
	res.postRecv(1)
	go pong(ctx, res)
	ini.postRecv(1)
	b.ReportAllocs()
	for b.Loop() {
		ini.post(&iwarp.SendWR{Unsignaled: true})
		if _, err := ini.RecvCQ().Next(ctx); err != nil {
			b.Fatal(err)
		}
		ini.postRecv(1)
	}
}
