package startup

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
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
		{"no common RTR", mpa.Offer{RTR: mpa.RTRWrite}, mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 2},
			rdmap.CodeMPANoMatchingRTR, "we offered RTR write"},
		{"no RTR at all", mpa.Offer{}, mpa.Enhanced{A: true, IRD: 1, ORD: 2},
			rdmap.CodeMPANoMatchingRTR, "ClientServer"},
		{"A cleared", mpa.Offer{}, mpa.Enhanced{IRD: 1, ORD: 1}, rdmap.CodeMPANoMatchingRTR, "ClientServer"},
		{"too large an ORD", mpa.Offer{IRD: 4, ORD: 4}, mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 200},
			rdmap.CodeMPAInsufficientIRD, "raise IRD or MaxIRD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
			qp, err := pd.CreateQP(iwarp.QPConfig{})
			rig.Must(t, err)
			ln := rig.ListenTCP(t)
			d := iwarp.Dialer{MPA: c.offer}
			dialed := rig.DialInBackground(t, func() error {
				return d.DialQP(rig.Within(t), qp,
					"tcp", ln.Addr().String())
			})
			p := rig.AcceptRequest(t, ln)
			p.Send(rig.Frame(mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 2,
				PrivateData: append(rig.Enhanced(c.reply), "why"...)}))
			p.WantTerminate(c.code)
			p.WantClosed()
			p.Conn.Close()
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
	if got.PeerIRD != reply.IRD || got.PeerORD != reply.ORD || got.AnsweredRTR != reply.RTR() ||
		string(got.PrivateData) != ulp || !rig.Contains(err, advice) {
		t.Errorf("the error has %+v: %v\nof the Reply %+v with %q; want %q in it", got, err, reply, ulp, advice)
	}
}

// TestFailedEstablishment has the Initiator's QP go away during the startup.
//
// Proves E11.
func TestFailedEstablishment(t *testing.T) {
	qp, err := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})).CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	p, _, dialed := dialPeerInBackground(t, qp)
	rig.Should(t, qp.Close())
	p.Send(rig.Frame(rig.Reply(2)))
	p.WantTerminate(rdmap.CodeMPALocalCatastrophic)
	p.Conn.Close()
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
		qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
		ln := rig.Listen(t, c.cfg)
		p, req := rig.Ask(t, ln, c.first)
		accepted := rig.DialInBackground(t, func() error {
			return req.AcceptQP(rig.Within(t),
				qp, iwarp.AcceptConfig{})
		})
		c.answer(p)
		rig.Should(t, qp.Close())
		p.Send(c.owed)
		if c.name == "Rtr frame" {
			p.WantTerminate(rdmap.CodeMPALocalCatastrophic)
		} else {
			p.WantBytes(startKey(false))
		}
		if b := p.WantFIN(); len(b) > 0 {
			t.Errorf("%s: sent %x", c.name, b)
		}
		p.Conn.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestConnectTwice refuses to connect a QP that is connected or being connected.
func TestConnectTwice(t *testing.T) {
	ini, _ := rig.Connect(t)
	if err := new(iwarp.Dialer).DialQP(rig.Within(t), ini.QP, "tcp",
		"127.0.0.1:1"); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a connected QP: %v", err)
	}
	qp, err := ini.PD.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	p, addr, dialed := dialPeerInBackground(t, qp)
	if err := new(iwarp.Dialer).DialQP(rig.Within(t), qp, "tcp", addr); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a QP that is being connected: %v", err)
	}
	p.Send(rig.Frame(rig.Reply(2)))
	rig.Should(t, <-dialed)
	p.Want(rdmap.OpWrite)
}

// writes notes the length of each write.
type writes struct {
	net.Conn
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return w.Conn.Write(b)
}

// TestNoLastMessage begins MPA where the streaming mode has no last message of ours: nothing is written for it, as
// TLS, or a record of another protocol, would make bytes of an empty write too.
func TestNoLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		ini, res := &writes{Conn: a}, &writes{Conn: b}
		dialed := rig.DialInBackground(t, func() error {
			qp, err := new(iwarp.Dialer).Initiate(rig.Within(t), ini, nil)
			if err == nil {
				err = qp.Abort()
			}
			return err
		})
		req, err := new(iwarp.ListenConfig).Respond(rig.Within(t), res, nil)
		rig.Must(t, err)
		if len(ini.sizes) != 1 || len(res.sizes) != 0 {
			t.Errorf("the Initiator has written %d bytes, the Responder %d", ini.sizes, res.sizes)
		}
		qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		rig.Must(t, err)
		rig.Must(t, <-dialed)
		_ = qp.Abort()
	})
}

// TestFailedRespondIsCounted has a peer send no Request.
func TestFailedRespondIsCounted(t *testing.T) {
	a, b := rig.NewPipe(t)
	go a.Write(rig.Frame(rig.Reply(2)))
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	if _, err := (&iwarp.ListenConfig{RNIC: rnic}).Respond(rig.Within(t), b, nil); err == nil {
		t.Fatal("it was taken for a Request")
	}
	if s := rnic.Stats().Startup; s.Started != 1 || s.Failed[mpa.FailureResponderResponder.String()] != 1 {
		t.Errorf("counted %+v", s)
	}
}
