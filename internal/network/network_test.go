package network_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNetworks has two ends in one process meet over every network.
func TestNetworks(t *testing.T) {
	for _, name := range append(network.Names(), "") {
		n, err := network.Open(name)
		testrig.Must(t, err)
		ctx := testrig.Within(t)
		ln, err := n.Listen(ctx, n.Here, &iwarp.ListenConfig{})
		if name == network.KernelSCTP && errors.Is(err, errors.ErrUnsupported) {
			t.Logf("not on this system: %v", err)
			continue
		}
		testrig.Must(t, err)
		met := make(chan error, 1)
		go func() {
			req, err := ln.Accept(ctx)
			if err == nil {
				_, err = req.Accept(ctx, iwarp.AcceptConfig{})
			}
			met <- err
		}()
		qp, err := n.Dial(ctx, &iwarp.Dialer{}, ln.Addr().String())
		testrig.Must(t, err)
		testrig.Must(t, <-met)
		if got := qp.Negotiated().CRC; got != n.Streams {
			t.Errorf("%q: CRC %t, and it has MPA: %t", name, got, n.Streams)
		}
		testrig.Must(t, qp.Close())
		testrig.Must(t, ln.Close())
		testrig.Must(t, n.Close())
		testrig.Must(t, n.Close())
	}
	n, err := network.Open(network.UserTCP)
	testrig.Must(t, err)
	testrig.Must(t, n.Close())
	if _, err := n.Dial(t.Context(), &iwarp.Dialer{}, n.Here); err == nil {
		t.Error("a network that is closed is dialed")
	}
	if _, err := n.Listen(t.Context(), n.Here, &iwarp.ListenConfig{}); err == nil {
		t.Error("a network that is closed is listened on")
	}
	if n, err := network.Open(network.SCTPInUDP); err != nil || n.Name != network.SCTP {
		t.Errorf("sctp:udp is %+v, %v", n, err)
	}
	if n, err := network.Open("pigeons"); err == nil {
		t.Errorf("there is %+v", n)
	}
}

// A door counts how often it was closed.
type door int

func (d *door) Close() error { *d++; return nil }

// TestCloseWith ends a context before and after the connection was to be closed with it.
func TestCloseWith(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var d door
			ctx, cancel := context.WithCancel(t.Context())
			stop := network.CloseWith(ctx, &d)
			if stopped && !stop() {
				t.Error("it was too late to stop")
			}
			if synctest.Wait(); d != 0 {
				t.Error("it is closed while the context lasts")
			}
			cancel()
			if synctest.Wait(); (d == 1) == stopped || d > 1 {
				t.Errorf("stopped %v: closed %d times", stopped, d)
			}
		})
	}
}
