package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestOwnPlaces: a client whom a service rejects, as its own places are taken, counts as rejected, and not as one that has ended in order.
func TestOwnPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pings := rping.NewServer(rnic, rping.Config{})
		var log testrig.Buffer
		s := New(Config{
			MaxConnections: 1024, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Services: []Service{{Name: "rping", Wants: "none", Knows: pings.Knows, Serve: pings.Serve}},
		})
		under := testrig.NewListener("server")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, iwarp.NewListener(under, iwarp.ListenConfig{RNIC: rnic})) }()
		dial := func(port int) error {
			ours, theirs := testrig.Pipe(fmt.Sprintf("192.0.2.1:%d", port), "server")
			testrig.Must(t, under.Offer(t.Context(), theirs))
			qp, err := new(iwarp.Dialer).Initiate(t.Context(), ours, nil)
			if err == nil {
				t.Cleanup(func() { _ = qp.Abort() })
			}
			return err
		}
		port := 1
		for ; port <= 192; port++ { // three quarters of rping's 256
			testrig.Must(t, dial(port))
		}
		refused := (*iwarp.RejectError)(nil)
		if err := dial(port); !errors.As(err, &refused) || !strings.Contains(string(refused.PrivateData), "192 connections from your address already") {
			t.Fatal(err)
		}
		testrig.Should(t, refused.Conn.Close())
		synctest.Wait()
		if all := s.Stats(); all.Full != 1 || all.Services["rping"].Ended != 0 || all.Services["rping"].Failed != 0 {
			t.Errorf("%+v", all)
		}
		if !strings.Contains(log.String(), "level=WARN msg=rejected") {
			t.Error(log.String())
		}
		time.Sleep(time.Second)
		stop()
		<-ended
	})
}
