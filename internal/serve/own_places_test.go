package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestOwnPlaces: a client whom a service rejects, as its own places are taken, counts as rejected, and not as one that has ended in order.
func TestOwnPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pings := rping.NewServer(rnic, rping.Config{})
		r := &rig{t: t, ln: testrig.NewListener("server"), log: new(bytes.Buffer), ended: make(chan error, 1)}
		r.server = New(Config{
			MaxConnections: 1024, Log: slog.New(slog.NewTextHandler(r.log, nil)),
			Services: []Service{{Name: "rping", Wants: "none", Knows: pings.Knows, Serve: pings.Serve}},
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() { r.ended <- r.server.Run(ctx, iwarp.NewListener(r.ln, iwarp.ListenConfig{RNIC: rnic})) }()
		port := 1
		for ; port <= 192; port++ { // three quarters of rping's 256
			qp, err := r.dialFrom(fmt.Sprint("192.0.2.1:", port), "")
			testrig.Must(t, err)
			t.Cleanup(func() { _ = qp.Abort() })
		}
		refused := (*iwarp.RejectError)(nil)
		if _, err := r.dialFrom(fmt.Sprint("192.0.2.1:", port), ""); !errors.As(err, &refused) ||
			!strings.Contains(string(refused.PrivateData), "192 connections from your address already") {
			t.Fatal(err)
		}
		synctest.Wait()
		if all := r.server.Stats(); all.Full != 1 || all.Services["rping"].Ended != 0 || all.Services["rping"].Failed != 0 {
			t.Errorf("%+v", all)
		}
		r.logged("level=WARN msg=rejected")
		stop()
		<-r.ended
	})
}
