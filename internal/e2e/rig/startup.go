package rig

import (
	"context"
	"fmt"
	"maps"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// RespondToPeer is a Responder of revision 2 whose Initiator the test plays.
func RespondToPeer(t testing.TB, cfg iwarp.QPConfig) (*End, *Peer) {
	t.Helper()
	return RespondToPeerAs(t, iwarp.AcceptConfig{QP: cfg})
}

// RespondToPeerAs is RespondToPeer with all that Accept can be told.
func RespondToPeerAs(t testing.TB, cfg iwarp.AcceptConfig) (*End, *Peer) {
	t.Helper()
	res := NewEnd(t, iwarp.RNICConfig{})
	ln := Listen(t, iwarp.ListenConfig{PD: res.PD})
	p := DialPeer(t, ln.Addr())
	started := res.Takes(ln, cfg)
	p.Start(2)
	Must(t, <-started)
	Until(t, func() bool { return res.Stats().ReceivedFPDUs > 0 }, "the RTR indication")
	return res, p
}

// DialInBackground runs the Initiator's side while the test plays the Responder.
func DialInBackground(t testing.TB, dial func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- dial() }()
	return done
}

// Ask is a peer that connects and sends its first frame, and the Request that comes of it.
func Ask(t testing.TB, ln *iwarp.Listener, first []byte) (*Peer, *iwarp.Request) {
	t.Helper()
	p := DialPeer(t, ln.Addr())
	p.Send(first)
	req, err := ln.Accept(Within(t))
	Must(t, err)
	return p, req
}

// AcceptPeer plays a Responder for one connection.
func AcceptPeer(t testing.TB, ln net.Listener) *Peer {
	t.Helper()
	c, err := ln.Accept()
	Must(t, err)
	t.Cleanup(func() { c.Close() })
	return NewPeer(t, c)
}

// AcceptRequest plays a Responder for one connection, of which the Request has arrived.
func AcceptRequest(t testing.TB, ln net.Listener) *Peer {
	t.Helper()
	p := AcceptPeer(t, ln)
	p.WantFrame(mpa.KeyRequest)
	return p
}

// TwoReceives is a Prepare.
func (e *End) TwoReceives(qp *iwarp.QP) error {
	e.QP = qp
	mr, err := e.PD.Register(make([]byte, 128), iwarp.LocalWrite)
	for i := range 2 {
		if err == nil {
			err = qp.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{mr.Slice(64*i, 64)}})
		}
	}
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// InitiateToPeer is an Initiator of revision 2 whose Responder the test plays.
func InitiateToPeer(t testing.TB) (*End, *Peer) {
	t.Helper()
	ini := NewEnd(t, iwarp.RNICConfig{})
	ln := ListenTCP(t)
	d := iwarp.Dialer{PD: ini.PD, QP: iwarp.QPConfig{CloseTimeout: Soon}}
	dialed := ini.Dials(d, ln)
	p := AcceptRequest(t, ln)
	p.Send(Frame(Reply(2)))
	Must(t, <-dialed)
	return ini, p
}

// WaitFailed returns the Listener's counters when it has seen a startup fail. Its
// Close waits for all that is under way.
func WaitFailed(t *testing.T, ln *iwarp.Listener) iwarp.ListenerStats {
	t.Helper()
	Should(t, ln.Close())
	return ln.Stats()
}

// RespondOverPipe is a Responder that has the Request of a peer, and the peer, which does
// its part in the background.
func RespondOverPipe(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig,
	part func(*Peer)) (*Peer, *iwarp.Request) {
	t.Helper()
	a, b := NewPipe(t)
	p := NewPeer(t, a)
	p.Meanwhile(func() { part(p) })
	req, err := cfg.Respond(ctx, b, nil)
	Must(t, err)
	return p, req
}

// AskOverPipe is respondOverPipe with a peer that sends its first frame.
func AskOverPipe(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig, first []byte) (*Peer, *iwarp.Request) {
	t.Helper()
	return RespondOverPipe(ctx, t, cfg, func(p *Peer) { p.Send(first) })
}

// WantStartups compares what an RNIC has counted of startups.
func WantStartups(t *testing.T, who string, e *End, want iwarp.StartupStats) {
	t.Helper()
	got := e.RNIC.Stats().Startup
	if got.Started != want.Started || got.Established != want.Established || got.Rejected != want.Rejected ||
		!maps.Equal(got.Failed, want.Failed) {
		t.Errorf("%s has counted %+v, want %+v", who, got, want)
	}
}
