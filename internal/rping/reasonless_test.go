package rping

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNoRoomForReason: a client is rejected without a reason where the Reply has no room for that, and not left without an answer.
func TestNoRoomForReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		siw, err := iwarp.LookupPreset("siw")
		testrig.Must(t, err)
		long := strings.Repeat("a", 300) // siw takes 252 octets
		s := newServer(ServerConfig{Config: Config{Preset: &siw}, Persistent: true, Reject: &long}, iwarp.NewRNIC(iwarp.RNICConfig{}))
		under := testrig.NewListener("server")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		ln := iwarp.NewListener(under, iwarp.ListenConfig{Preset: &siw})
		go func() { ended <- s.run(ctx, ln) }()
		ours, theirs := testrig.Pipe("client", "server")
		testrig.Must(t, under.Offer(t.Context(), theirs))
		_, err = (&iwarp.Dialer{Preset: &siw}).Initiate(t.Context(), ours, nil)
		refused := (*iwarp.RejectError)(nil)
		if !errors.As(err, &refused) || len(refused.PrivateData) != 0 {
			t.Errorf("got %v", err)
		} else {
			testrig.Should(t, refused.Conn.Close())
		}
		stop()
		testrig.Should(t, <-ended)
		testrig.Should(t, ln.Close())
	})
}
