package oooexperiment

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A refusing Stack has no way to any address.
type refusing struct{ why error }

func (r refusing) DialContext(context.Context, string, string) (net.Conn, error) { return nil, r.why }
func (r refusing) Listen(context.Context, string, string) (net.Listener, error)  { return nil, r.why }

// TestConnectRefused has the end that dials fail: the other does not wait for it.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	ctx := testrig.Within(t)
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	refused := errors.New("there is no way")
	q := &qpRun{run: &run{cfg: Config{Connections: 3}}}
	if err := q.connectAll(ctx, &iwarp.Dialer{Stack: refusing{refused}}, ln); !errors.Is(err, refused) {
		t.Errorf("connecting: %v, want %v", err, refused)
	}
}
