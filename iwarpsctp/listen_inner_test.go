package iwarpsctp

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A watched Network keeps what it has listened with.
type watched struct {
	*Network
	on *listener
}

func (w *watched) Listen(
	ctx context.Context, network, address string, with *net.ListenConfig, unused time.Duration,
) (iwarp.SegmentListener, error) {
	l, err := w.Network.Listen(ctx, network, address, with, unused)
	w.on, _ = l.(*listener)
	return l, err
}

// TestSocketFails: a Listener whose socket is gone says so.
func TestSocketFails(t *testing.T) {
	over := &watched{Network: new(Network)}
	ln, err := (&iwarp.ListenConfig{Network: over}).Listen(t.Context(), "sctp4", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	testrig.Must(t, over.on.associations.(udpSocket).Endpoint.Close())
	if _, err := ln.Accept(testrig.Within(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}
