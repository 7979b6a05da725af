package rping

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestOneAddress leaves a quarter of a persistent server's places to others, whatever one address does.
func TestOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		s := newServer(ServerConfig{Persistent: true}, rnic)
		under := testrig.NewListener("server")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx, (&iwarp.ListenConfig{RNIC: rnic}).NewListener(under)) }()
		dial := func(from string) error {
			ours, theirs := testrig.Pipe(from, "server")
			testrig.Must(t, under.Offer(t.Context(), theirs))
			qp, err := new(iwarp.Dialer).Initiate(t.Context(), ours, nil)
			if err == nil {
				t.Cleanup(func() { _ = qp.Abort() })
			}
			if refused := (*iwarp.RejectError)(nil); errors.As(err, &refused) {
				_ = refused.Conn.Close()
				return errors.New(string(refused.PrivateData))
			}
			return err
		}
		for port := range share {
			testrig.Must(t, dial(fmt.Sprintf("192.0.2.1:%d", port+1)))
		}
		if err := dial("192.0.2.1:999"); err == nil ||
			!strings.Contains(err.Error(), "192 connections from your address already") {
			t.Errorf("one more of the same address: %v", err)
		}
		testrig.Should(t, dial("192.0.2.2:1"))
		stop()
		testrig.Should(t, <-ended)
	})
}
