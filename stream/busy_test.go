package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream"
)

// TestBusy has a host whose memory is taken say so to the next who comes, and take the one after that in when there is some again.
func TestBusy(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Octets: 1 << 20}})
	pd, err := rnic.AllocPD()
	must(t, err)
	taken, err := pd.Register(make([]byte, 1<<20), 0)
	must(t, err)
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", iwarp.ListenConfig{RNIC: rnic})
	must(t, err)
	defer rnic.Close()
	accepted := make(chan error)
	accept := func() {
		req, err := ln.Accept(context.Background())
		if err == nil {
			a := stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}, Config: stream.Config{Ring: 4096}}
			_, err = a.Accept(context.Background(), req)
		}
		accepted <- err
	}
	go accept()
	_, err = stream.Dial(t.Context(), "tcp", ln.Addr().String())
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || !strings.Contains(string(rejected.PrivateData), "is left here: try again later") {
		t.Fatal(err)
	}
	_ = rejected.Conn.Close()
	if err := <-accepted; !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("who listens has %v", err)
	}
	must(t, taken.Deregister())
	go accept()
	conn, err := stream.Dial(t.Context(), "tcp", ln.Addr().String())
	must(t, err)
	must(t, <-accepted)
	_ = conn.QP().Abort()
}
