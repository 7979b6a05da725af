package iwarp_test

import (
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestUnusable has a Responder answer what its Initiator cannot live with: the
// Initiator says why by a Terminate, and its QP can be connected again.
//
// Proves E05, E10.
func TestUnusable(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer mpa.Offer
		reply mpa.Enhanced
		code  rdmap.Code

		advice string
	}{
		{"no common RTR", mpa.Offer{RTR: mpa.RTRWrite}, mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 2}, rdmap.CodeMPANoMatchingRTR, "we offered RTR write"},
		{"no RTR at all", mpa.Offer{}, mpa.Enhanced{A: true, IRD: 1, ORD: 2}, rdmap.CodeMPANoMatchingRTR, "ClientServer"},
		{"A cleared", mpa.Offer{}, mpa.Enhanced{IRD: 1, ORD: 1}, rdmap.CodeMPANoMatchingRTR, "ClientServer"},
		{"too large an ORD", mpa.Offer{IRD: 4, ORD: 4}, mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 200}, rdmap.CodeMPAInsufficientIRD, "raise IRD or MaxIRD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
			qp, err := pd.CreateQP(iwarp.QPConfig{})
			must(t, err)
			ln := listenTCP(t)
			d := iwarp.Dialer{MPA: c.offer}
			dialed := dialInBackground(t, func() error { return d.DialQP(within(t), qp, "tcp", ln.Addr().String()) })
			p := acceptRequest(t, ln)
			p.send(frame(mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 2, PrivateData: append(enhanced(c.reply), "why"...)}))
			p.wantTerminate(c.code)
			p.wantClosed()
			p.conn.Close()
			err = <-dialed
			var term *iwarp.TerminateError
			if !errors.As(err, &term) || term.Code != c.code || term.Remote {
				t.Errorf("DialQP: %v", err)
			}
			wantReply(t, err, c.reply, "why", c.advice)
			if s := pd.RNIC().Stats().Startup; s.Failed[c.code.String()] != 1 || s.Established != 0 {
				t.Errorf("counted %+v", s)
			}
			if qp.State() != iwarp.StateIdle {
				t.Errorf("the QP is in state %v", qp.State())
			}
		})
	}
}

// wantReply looks for what a Reply said in the error that it led to.
func wantReply(t *testing.T, err error, reply mpa.Enhanced, ulp, advice string) {
	t.Helper()
	var n *iwarp.NegotiationError
	if !errors.As(err, &n) {
		t.Errorf("got %v, want a NegotiationError", err)
		return
	}
	got := n.Negotiated
	if got.PeerIRD != reply.IRD || got.PeerORD != reply.ORD || got.AnsweredRTR != reply.RTR() || string(got.PrivateData) != ulp || !contains(err, advice) {
		t.Errorf("the error has %+v: %v\nof the Reply %+v with %q; want %q in it", got, err, reply, ulp, advice)
	}
}

// TestFailedEstablishment has the Initiator's QP go away during the startup.
//
// Proves E11.
func TestFailedEstablishment(t *testing.T) {
	qp, err := newPD(t, newRNIC(t, iwarp.RNICConfig{})).CreateQP(iwarp.QPConfig{})
	must(t, err)
	p, _, dialed := dialPeerInBackground(t, qp)
	should(t, qp.Close())
	p.send(frame(reply(2)))
	p.wantTerminate(rdmap.CodeMPALocalCatastrophic)
	p.conn.Close()
	if err := <-dialed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Connect: %v", err)
	}
}

// TestFailedAccept has the Responder's QP go away while a frame is awaited after the
// answer. After an Rtr frame it may tell the peer why; after a Start Key it has to wait
// for an FPDU that does not come, and closes in order.
//
// Proves E11, Q11, T03, K03.
func TestFailedAccept(t *testing.T) {
	for _, c := range owings() {
		qp := create(t, newPD(t, newRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
		ln := listen(t, c.cfg)
		p, req := ask(t, ln, c.first)
		accepted := dialInBackground(t, func() error { return req.AcceptQP(within(t), qp, iwarp.AcceptConfig{}) })
		c.answer(p)
		should(t, qp.Close())
		p.send(c.owed)
		if c.name == "Rtr frame" {
			p.wantTerminate(rdmap.CodeMPALocalCatastrophic)
		} else {
			p.wantOctets(startKey(false))
		}
		if b := p.wantFIN(); len(b) > 0 {
			t.Errorf("%s: sent %x", c.name, b)
		}
		p.conn.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestConnectTwice refuses to connect a QP that is connected or being connected.
func TestConnectTwice(t *testing.T) {
	ini, _ := connect(t)
	if err := new(iwarp.Dialer).DialQP(within(t), ini.QP, "tcp", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a connected QP: %v", err)
	}
	qp, err := ini.pd.CreateQP(iwarp.QPConfig{})
	must(t, err)
	p, addr, dialed := dialPeerInBackground(t, qp)
	if err := new(iwarp.Dialer).DialQP(within(t), qp, "tcp", addr); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a QP that is being connected: %v", err)
	}
	p.send(frame(reply(2)))
	should(t, <-dialed)
	p.want(rdmap.OpWrite)
}
