package rping

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// share is how many places one address may have.
const share = maxClients * 3 / 4

// persistent runs a persistent server with so many places, which a client loses as soon
// as it is silent and another needs one.
func persistent(t *testing.T, places int, adjust func(*ServerConfig)) (s *server, running *testServer) {
	t.Helper()
	running = start(t, func(c *ServerConfig) {
		c.Persistent = true
		if adjust != nil {
			adjust(c)
		}
	}, func(made *server) { s, made.slots = made, admission.NewServerTable(places, 0) })
	return s, running
}

// TestSilentClients has more silent clients than there are places for an address: each that comes takes
// the place of the one that has been silent longest.
func TestSilentClients(t *testing.T) {
	_, s := persistent(t, maxClients, nil)
	var silent []*client
	for range share + 2 {
		c := aClient(t, s.addr)
		defer c.qp.Abort()
		silent = append(silent, c)
	}
	for i := range 2 {
		<-silent[i].qp.Done()
	}
	cfg, _ := config()
	if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 3}); err != nil {
		t.Errorf("a client that pings: %v", err)
	}
	<-silent[2].qp.Done()
	s.stop()
	testrig.Should(t, s.wait(t))
	failed := of[ClientFailed](s.told)
	if len(failed) < 3 {
		t.Fatalf("%d clients are reported: %v", len(failed), failed)
	}
	for _, f := range failed {
		if !errors.Is(f.Err, admission.ErrSilent) {
			t.Errorf("%v: %v", f.Remote, f.Err)
		}
	}
}

// TestNothingIsKept looks at what a server that goes on running has of some hundred clients that came and went, in
// order and otherwise: neither a place, nor anything of its RNIC, nor the memory of a QP.
func TestNothingIsKept(t *testing.T) {
	const clients = 200
	qps := make(map[uint32]weak.Pointer[iwarp.QP]) // the watcher is called by one at a time
	var made *server
	s := start(t, func(c *ServerConfig) {
		c.Persistent = true
		c.Watch = func(e Event) {
			if _, ok := e.(Connected); ok {
				for _, qp := range made.rnic.QPs() {
					qps[qp.Num()] = weak.Make(qp)
				}
			}
		}
	}, func(s *server) { made, s.slots = s, admission.NewServerTable(maxClients, time.Hour) })
	for i := range clients {
		if i%3 == 0 {
			aClient(t, s.addr).qp.Abort()
			continue
		}
		cfg, _ := config()
		testrig.Must(t, Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1}))
	}
	wantGone(t, "what its RNIC has", func() string { return made.held() })
	wantGone(t, "places", func() string { return taken(made.slots) })
	if len(qps) < clients*2/3 { // an aborted client may be gone before the server has a QP
		t.Fatalf("only %d QPs were seen", len(qps))
	}
	wantGone(t, "QPs in memory", func() string {
		runtime.GC()
		maps.DeleteFunc(qps, func(_ uint32, qp weak.Pointer[iwarp.QP]) bool { return qp.Value() == nil })
		return fmt.Sprint(slices.Collect(maps.Keys(qps)))
	})
	s.stop()
	testrig.Should(t, s.wait(t))
}

// held tells what a server holds for clients, as a list that is empty if that is nothing.
func (s *server) held() string {
	n := s.rnic.Stats()
	all := map[string]int{
		"PDs": n.PDs, "QPs": n.QPs, "CQs": n.CQs, "MRs": n.MRs, "bytes": n.RegisteredBytes,
		"CQ entries": n.CQEntries, "work requests": n.WorkRequests,
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n == 0 })
	return strings.TrimPrefix(fmt.Sprint(all), "map")
}

// taken tries whether an address can have its share of all places, as a list that is empty if it can.
func taken(slots *admission.Table) string {
	for n := range share {
		g, err := slots.Enter(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
		if err != nil {
			return fmt.Sprintf("[%d of %d: %v]", share-n, share, err)
		}
		defer g.Leave()
	}
	return "[]"
}

// wantGone waits until nothing is left: the server hears of the last clients' ends after them.
func wantGone(t *testing.T, what string, left func() string) {
	t.Helper()
	for over := testrig.Within(t); left() != "[]"; runtime.Gosched() {
		if over.Err() != nil {
			t.Fatalf("%s: left are %s", what, left())
		}
	}
}

// TestDrippingClient reads a byte again and again, and never closes: the server ends all
// the same.
func TestDrippingClient(t *testing.T) {
	_, s := persistent(t, 1, func(c *ServerConfig) { c.closeTime = 50 * time.Millisecond })
	c := aClient(t, s.addr)
	testrig.Must(t, c.advertise(advertOf(c.data, 64)))
	dripping := make(chan struct{})
	go func() {
		defer close(dripping)
		for {
			if err := c.perform(t.Context(), iwarp.OpRead, 0, iwarp.Remote{}); err != nil {
				return
			}
		}
	}()
	s.stop()
	testrig.Should(t, s.wait(t))
	<-dripping
}
