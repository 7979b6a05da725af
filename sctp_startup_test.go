package iwarp_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSCTPStartups counts what comes of sessions at both ends: one that comes up, one that is rejected, one that is given up before it is, and one
// that nobody answers. The Listener takes one at a time from an address, so that each has given its place back.
func TestSCTPStartups(t *testing.T) {
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, MaxPerSource: 1})
	must(t, err)
	defer ln.Close()
	dial := func(ctx context.Context, addr net.Addr) <-chan error {
		return dialInBackground(t, func() (err error) {
			ini.QP, err = (&iwarp.Dialer{PD: ini.pd}).Dial(ctx, "sctp4", addr.String())
			return err
		})
	}
	dialed := dial(within(t), ln.Addr())
	must(t, <-res.takes(ln, iwarp.AcceptConfig{}))
	must(t, <-dialed)
	finish(t, ini, res)

	dialed = dial(within(t), ln.Addr())
	req, err := ln.Accept(within(t))
	must(t, err)
	if _, err := req.Reject(make([]byte, 600)); !errors.Is(err, mpa.ErrOffer) { // which leaves the Request as it is
		t.Errorf("too much private data: %v", err)
	}
	_, err = req.Reject(nil)
	must(t, err)
	if err := <-dialed; !errors.As(err, new(*iwarp.RejectError)) {
		t.Errorf("rejected: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	dialed = dial(ctx, ln.Addr())
	req, err = ln.Accept(within(t))
	must(t, err)
	cancel()
	if err := <-dialed; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	until(t, func() bool { // what cannot be said is refused, until the peer has withdrawn
		_, err = req.Reject(make([]byte, 600))
		return !errors.Is(err, mpa.ErrOffer)
	}, "the news that the Dial was given up")
	if err == nil {
		t.Error("a session that was given up is rejected")
	}

	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	if err := <-dial(ctx, silent.LocalAddr()); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody: %v", err)
	}
	wantStartups(t, "the Initiator", ini, iwarp.StartupStats{Started: 4, Established: 1, Rejected: 1, Failed: map[string]uint64{"given up": 2}})
	wantStartups(t, "the Responder", res, iwarp.StartupStats{Started: 3, Established: 1, Rejected: 1, Failed: map[string]uint64{"other": 1}})
	if s := ln.Stats(); s.Started != 3 || s.Established != 1 || s.Rejected != 1 || s.Failed["other"] != 1 {
		t.Errorf("the Listener has counted %+v", s)
	}
}

func wantStartups(t *testing.T, who string, e *end, want iwarp.StartupStats) {
	t.Helper()
	got := e.rnic.Stats().Startup
	if got.Started != want.Started || got.Established != want.Established || got.Rejected != want.Rejected || !maps.Equal(got.Failed, want.Failed) {
		t.Errorf("%s has counted %+v, want %+v", who, got, want)
	}
}

// TestSCTPSocketGoes: the socket of a Dial is closed with the only association on it, so that its port is free.
func TestSCTPSocketGoes(t *testing.T) {
	ini, res := overSCTP().connect(t)
	local := ini.LocalAddr().String()
	finish(t, ini, res)
	until(t, func() bool {
		pc, err := net.ListenPacket("udp4", local)
		if err == nil {
			err = pc.Close()
		}
		return err == nil
	}, "the port "+local)
}

// TestSCTPResolver has a Dial ask the resolver that it was given.
func TestSCTPResolver(t *testing.T) {
	asked := errors.New("asked")
	d := iwarp.Dialer{Net: net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, asked
	}}}}
	if _, err := d.Dial(within(t), "sctp", "name.invalid:4791"); !contains(err, "asked") {
		t.Errorf("got %v", err)
	}
}
