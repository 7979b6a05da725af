package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestDraw: clients by both ways draw at once, and each number is drawn by one of them.
func TestDraw(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := listen(ctx, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- s.serve(serving) }()

	var all sync.WaitGroup
	var mu sync.Mutex
	drawn := map[uint64]bool{}
	for _, ln := range s.listeners {
		network := map[string]string{"tcp": "tcp", "udp": "sctp"}[ln.Addr().Network()]
		for range 8 {
			all.Go(func() {
				n, err := draw(ctx, network, ln.Addr().String())
				if err != nil {
					t.Errorf("%s: %v", network, err)
				}
				mu.Lock()
				defer mu.Unlock()
				drawn[n] = true
			})
		}
	}
	all.Wait()
	if got := slices.Sorted(maps.Keys(drawn)); len(got) != 16 || got[0] != 1 || got[15] != 16 {
		t.Errorf("16 clients have drawn %v", got)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
