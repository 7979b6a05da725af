package rping

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// persistent runs a persistent server with so many places, which a client loses as soon
// as it is silent and another needs one.
func persistent(t *testing.T, places int, adjust func(*ServerConfig)) (s *server, running *testServer) {
	t.Helper()
	running = start(t, func(c *ServerConfig) {
		c.Persistent = true
		if adjust != nil {
			adjust(c)
		}
	}, func(made *server) { s, made.places, made.silence = made, places, 0 })
	return s, running
}

// TestSilentClients has more silent clients than there are places: each that comes takes
// the place of the one that has been silent longest.
func TestSilentClients(t *testing.T) {
	const places = maxClients
	_, s := persistent(t, places, nil)
	var silent []*client
	for range places + 2 {
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
		if !errors.Is(f.Err, errSilent) {
			t.Errorf("%v: %v", f.Remote, f.Err)
		}
	}
}

// TestNothingIsKept looks at what a server has of clients that came and went, in order
// and otherwise.
func TestNothingIsKept(t *testing.T) {
	made, s := persistent(t, maxClients, nil)
	for i := range 20 {
		cfg, _ := config()
		testrig.Must(t, Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1}))
		if i%2 == 0 {
			aClient(t, s.addr).qp.Abort()
		}
	}
	s.stop()
	testrig.Should(t, s.wait(t))
	n := made.rnic.Stats()
	if n.PDs != 0 || n.QPs != 0 || n.CQs != 0 || n.MRs != 0 || n.RegisteredOctets != 0 || n.WorkRequests != 0 || len(made.guests) != 0 {
		t.Errorf("left behind: %d PDs, %d QPs, %d CQs, %d MRs, %d octets, %d work requests, %d guests",
			n.PDs, n.QPs, n.CQs, n.MRs, n.RegisteredOctets, n.WorkRequests, len(made.guests))
	}
}

// TestDrippingClient reads an octet again and again, and never closes: the server ends all
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
