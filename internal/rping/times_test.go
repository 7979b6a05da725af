package rping

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTimes pings a server that takes 5 ms for each ping, with a second between them.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		slow := func(e Event) {
			if _, ok := e.(Pinged); ok {
				time.Sleep(5 * time.Millisecond)
			}
		}
		under := testrig.NewListener("server")
		ln := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(under)
		ended := make(chan error, 1)
		go func() { ended <- newServer(ServerConfig{Config: Config{Watch: slow}}, rnic).run(t.Context(), ln) }()
		cfg, client := config()
		begun := time.Now()
		testrig.Must(t, Client(t.Context(), "server", ClientConfig{Config: cfg, Size: 100, Count: 3,
			Interval: time.Second, Dial: func(ctx context.Context, d *iwarp.Dialer, _ string) (*iwarp.QP, error) {
				ours, theirs := testrig.Pipe("client", "server")
				testrig.Must(t, under.Offer(ctx, theirs))
				return d.Initiate(ctx, ours, nil)
			}}))
		if took := time.Since(begun); took != 2*time.Second+15*time.Millisecond {
			t.Errorf("all took %v", took)
		}
		var got []Pinged
		for _, p := range of[Pinged](client) {
			got = append(got, Pinged{Size: p.Size, Time: p.Time})
		}
		each := Pinged{Size: 100, Time: 5 * time.Millisecond}
		if diff := cmp.Diff([]Pinged{each, each, each}, got); diff != "" {
			t.Error(diff)
		}
		testrig.Should(t, <-ended)
	})
}

// TestInterruptedPause: an interrupt does not wait for the next ping.
func TestInterruptedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		begun := time.Now()
		err := (&client{cfg: ClientConfig{Interval: time.Hour}, pings: 1}).pause(ctx)
		if took := time.Since(begun); err == nil || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}
