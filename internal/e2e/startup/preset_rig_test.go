package startup

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
)

// said is what a scripted peer and a QP say to each other: some FPDUs.
var said = bytes.Repeat([]byte("what is said "), 300)

func lookup(t testing.TB, name string) *iwarp.Preset {
	t.Helper()
	p, err := iwarp.LookupPreset(name)
	rig.Must(t, err)
	return &p
}

func peerRow(t testing.TB, name string) peers.Peer {
	t.Helper()
	b, ok := peers.Lookup(name)
	if !ok {
		t.Fatalf("no scripted peer %q", name)
	}
	return b
}

// A scripted is a peer that responds on the loopback interface.
type scripted struct {
	addr  string
	ended chan error // one for each connection
}

// respondAs has a scripted peer respond to every connection that comes, and send
// back what it is sent.
func respondAs(t testing.TB, b peers.Peer) *scripted {
	ln := rig.ListenTCP(t)
	s := &scripted{addr: ln.Addr().String(), ended: make(chan error, 4)}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.ended <- echoAs(b, c)
			c.Close()
		}
	}()
	return s
}

// echoAs plays a Responder.
func echoAs(b peers.Peer, c net.Conn) error {
	s, err := peersim.Respond(&b, c, peersim.Consumer{})
	if err != nil {
		return err
	}
	return s.Echo()
}

// dial dials the scripted peer.
func (s *scripted) dial(t testing.TB, d iwarp.Dialer) (*rig.End, error) {
	t.Helper()
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	e := &rig.End{T: t, RNIC: rnic, PD: rig.NewPD(t, rnic)}
	d.PD = e.PD
	var err error
	e.QP, err = d.Dial(rig.Within(t), "tcp", s.addr)
	var rejected *iwarp.RejectError
	if errors.As(err, &rejected) {
		rejected.Conn.Close()
	}
	return e, err
}

// talks dials, and has a message echoed and the connection closed.
func (s *scripted) talks(t testing.TB, d iwarp.Dialer) iwarp.Negotiated {
	t.Helper()
	e, err := s.dial(t, d)
	rig.Must(t, err)
	n := e.Negotiated()
	if n.FellBack {
		<-s.ended // of the first connection
	}
	asks(t, e)
	rig.Must(t, <-s.ended)
	return n
}

// asks has a message echoed by the other end, and closes.
func asks(t testing.TB, e *rig.End) {
	t.Helper()
	mr := e.MR(2*len(said), iwarp.LocalWrite)
	copy(mr.Bytes(), said)
	e.MustPostRecv(1, mr.Slice(len(said), len(said)))
	rig.Must(t, e.Send(rig.Within(t), mr.Slice(0, len(said))))
	e.WantReceived(1, iwarp.StatusSuccess)
	e.Look()
	if !bytes.Equal(mr.Bytes()[len(said):], said) {
		t.Error("another message came back")
	}
	rig.Should(t, e.Close())
}

// An accepting is a Listener and how it takes one connection.
type accepting struct {
	listen iwarp.ListenConfig
	accept iwarp.AcceptConfig
	// play, if it is set, takes the peer's session once it is up.
	play func(*peersim.Session) error
}

// from has a scripted peer dial, and a message of its echoed by the QP. It returns
// what was negotiated, if the QP came up, and how the peer saw it.
func (a accepting) from(t testing.TB, b peers.Peer, c peersim.Consumer) (n iwarp.Negotiated, peer error) {
	t.Helper()
	ln := rig.Listen(t, a.listen)
	echoed := make(chan iwarp.Negotiated, 1)
	go func() { echoed <- a.echo(t, ln) }()
	s, _, err := peersim.Dial(&b, func() (net.Conn, error) {
		return (&net.Dialer{}).DialContext(rig.Within(t), "tcp", ln.Addr().String())
	}, c)
	if err == nil {
		err = a.talk(s)
		s.Close()
	}
	ln.Close()
	return <-echoed, err
}

// talk is the scripted peer's part.
func (a accepting) talk(s *peersim.Session) error {
	if a.play != nil {
		return a.play(s)
	}
	return s.Ask(said)
}

// echo accepts what comes, and has one QP send a message back.
func (a accepting) echo(t testing.TB, ln *iwarp.Listener) (n iwarp.Negotiated) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	e := &rig.End{T: t, RNIC: rnic, PD: rig.NewPD(t, rnic)}
	mr, err := e.PD.Register(make([]byte, len(said)), iwarp.LocalWrite)
	if err != nil {
		t.Error(err)
		return n
	}
	a.accept.PD = e.PD
	a.accept.Prepare = func(qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{ID: 1, SGL: []iwarp.SGE{mr.Slice(0, len(said))}})
	}
	for {
		req, err := ln.Accept(rig.Within(t))
		if err != nil {
			return n
		}
		if e.QP, err = req.Accept(rig.Within(t), a.accept); err != nil {
			t.Error(err)
			return n
		}
		n = e.Negotiated()
		wc, err := e.RecvCQ().Next(rig.Within(t))
		if err != nil {
			return n
		}
		if wc.Op == iwarp.OpRecv && wc.Status == iwarp.StatusSuccess {
			_ = e.Send(rig.Within(t), mr.Slice(0, wc.Length))
		}
		_ = e.Close()
	}
}

// wantRefused wants a scripted peer not to have liked something.
func wantRefused(t testing.TB, err error, end peers.End, why string) {
	t.Helper()
	var r *peersim.Refusal
	if !errors.As(err, &r) || r.End != end || !rig.Contains(err, why) {
		t.Errorf("the peer: got %v, want one that %v: %s", err, end, why)
	}
}
