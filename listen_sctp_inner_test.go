package iwarp

import (
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSCTPSocketFails: a Listener whose socket is gone says so.
func TestSCTPSocketFails(t *testing.T) {
	ln, err := Listen(t.Context(), "sctp4", "127.0.0.1:0", ListenConfig{})
	testrig.Must(t, err)
	defer ln.Close()
	testrig.Must(t, ln.ln.(udpListener).Endpoint.Close())
	if _, err := ln.Accept(testrig.Within(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}
