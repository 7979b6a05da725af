package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestShutdownUnderWay has a server go in the middle of a Read and of a Send of a client's: both are finished.
func TestShutdownUnderWay(t *testing.T) {
	t.Parallel()
	const n = 8 << 20
	for name, begin := range map[string]func(client, server *end) (done iwarp.Op, came func() *iwarp.MR){
		"a Read": func(client, server *end) (iwarp.Op, func() *iwarp.MR) {
			sink, src := client.mr(n, iwarp.LocalWrite), server.filled(n, 3, iwarp.RemoteRead)
			client.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, n)}, Remote: src.Remote(0)})
			until(t, func() bool { return server.Stats().SentStream > n/8 }, "some of the response")
			return iwarp.OpRead, func() *iwarp.MR { return sink }
		},
		"a Send": func(client, server *end) (iwarp.Op, func() *iwarp.MR) {
			sink, src := server.mr(n, iwarp.LocalWrite), client.filled(n, 3, 0)
			server.postRecv(5, sink.Slice(0, n))
			client.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, n)}})
			until(t, func() bool { return server.Stats().ReceivedStream > n/8 }, "some of the Send")
			return iwarp.OpSend, func() *iwarp.MR { server.wantReceived(5, iwarp.StatusSuccess); return sink }
		},
	} {
		for _, all := range []bool{false, true} {
			rnic := newRNIC(t, iwarp.RNICConfig{})
			pd := newPD(t, rnic)
			ln := listen(t, iwarp.ListenConfig{PD: pd})
			client, server := newEnd(t, iwarp.RNICConfig{}), &end{t: t, rnic: rnic, pd: pd}
			patient := iwarp.QPConfig{CloseTimeout: soon}
			accepted := server.takes(ln, iwarp.AcceptConfig{QP: patient})
			must(t, <-client.dials(iwarp.Dialer{PD: client.pd, QP: patient}, ln))
			must(t, <-accepted)
			op, came := begin(client, server)
			shutdown := ln.Shutdown
			if all {
				shutdown = rnic.Shutdown
			}
			if err := shutdown(within(t)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			client.wantSent(op, 1, iwarp.StatusSuccess)
			same(t, name, came(), client.filled(n, 3, 0))
			if err := client.wantEnd(); err != nil || !errors.Is(client.Err(), iwarp.ErrPeerClosed) {
				t.Errorf("%s: the client: %v", name, client.Err())
			}
		}
	}
}

// TestShutdownInTime has a context end that had nothing to abort.
func TestShutdownInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	should(t, rnic.Shutdown(ctx))
}

// TestShutdownAfterLoss has a server go that has lost a connection before: nobody is told once more, and the QP is closed, too.
func TestShutdownAfterLoss(t *testing.T) {
	t.Parallel()
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	ln := listen(t, iwarp.ListenConfig{PD: pd})
	client, server := newEnd(t, iwarp.RNICConfig{}), &end{t: t, rnic: rnic, pd: pd}
	accepted := server.takes(ln, iwarp.AcceptConfig{})
	must(t, <-client.dials(iwarp.Dialer{PD: client.pd}, ln))
	must(t, <-accepted)
	must(t, client.Abort())
	if err := server.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the server's connection: %v", err)
	}
	must(t, ln.Shutdown(within(t)))
	if n := len(rnic.QPs()); n != 0 {
		t.Errorf("%d QPs are left", n)
	}
}
