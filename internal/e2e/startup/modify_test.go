package startup

import (
	"bufio"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// startup is what an mpa.Initiator and an mpa.Responder have in common.
type startup interface {
	Input(now time.Time, b []byte) (int, error)
	Output() []byte
	Want() int
}

// exchange plays the part of a consumer that runs the MPA startup itself.
func exchange(c net.Conn, m startup, frame []byte) error {
	for {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		frame = nil
		for m.Want() > 0 && len(frame) == 0 {
			b := make([]byte, m.Want())
			n, err := c.Read(b)
			if err != nil {
				return err
			}
			if _, err := m.Input(time.Now(), b[:n]); err != nil {
				return err
			}
			frame = m.Output()
		}
		if len(frame) == 0 {
			return nil
		}
	}
}

// initiateByHand returns what an Initiator has negotiated.
func initiateByHand(c net.Conn, o mpa.Offer) (mpa.Negotiated, error) {
	m, err := mpa.NewInitiator(o)
	if err != nil {
		return mpa.Negotiated{}, err
	}
	err = exchange(c, m, m.Start(time.Now()))
	return m.Negotiated(), err
}

// respondByHand returns what a Responder has negotiated.
func respondByHand(c net.Conn, cfg mpa.ResponderConfig, o mpa.Offer) (mpa.Negotiated, error) {
	m := mpa.NewResponder(cfg)
	m.Start(time.Now())
	if err := exchange(c, m, nil); err != nil {
		return mpa.Negotiated{}, err
	}
	reply, err := m.Accept(time.Now(), o.Answer())
	if err == nil {
		err = exchange(c, m, reply)
	}
	return m.Negotiated(), err
}

// TestModifyRTS has consumers run the startup themselves, in every dialect and on either
// side, and only then give the connection to a QP.
//
// Proves V04, V03, N06: the transition from Idle to RTS, on what was negotiated.
func TestModifyRTS(t *testing.T) {
	t.Parallel()
	for _, c := range meetings {
		t.Run(c.name, func(t *testing.T) {
			a, b := rig.TCPPair(t)
			ini := rig.NewEnd(t, iwarp.RNICConfig{})
			res := rig.NewEnd(t, iwarp.RNICConfig{})
			ini.QP, res.QP = rig.NewQP(t, ini.PD, iwarp.QPConfig{}), rig.NewQP(t, res.PD, iwarp.QPConfig{})
			cfg := mpa.ResponderConfig{Dialects: c.listen.Dialects, Messages: c.listen.Messages}
			c.offer.IRD, c.offer.ORD, c.offer.Markers = 4, 4, true
			responded := rig.DialInBackground(t, func() error {
				n, err := respondByHand(b, cfg, mpa.Offer{IRD: mpa.NoNegotiation,
					ORD: mpa.NoNegotiation, Markers: true})
				if err != nil {
					return err
				}
				return res.ModifyRTS(b, n, nil)
			})
			n, err := initiateByHand(a, c.offer)
			rig.Must(t, err)
			rig.Must(t, ini.ModifyRTS(a, n, &iwarp.StreamAttr{MarkersReceive: on, MarkersSend: on}))
			rig.Must(t, <-responded)
			rig.WorksBothWays(t, ini, res)
			q := ini.Query()
			if q.State != iwarp.StateRTS || q.Stream.Version != iwarp.Version0+iwarp.Version(n.DDPVersion) ||
				q.Stream.MarkersSend != on || q.ORD != 4 {
				t.Errorf("attributes %+v", q)
			}
			if d := ini.Negotiated(); d.Dialect != c.want || d.MULPDU == 0 {
				t.Errorf("negotiated %+v", d)
			}
			rig.Finish(t, ini, res)
		})
	}
}

// TestModifyRTSToDialer has only one side do so: the other one does not know. What is set
// with the transition stays set.
//
// Proves V03, V04.
func TestModifyRTSToDialer(t *testing.T) {
	t.Parallel()
	a, b := rig.TCPPair(t)
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	res.QP = rig.NewQP(t, res.PD, rig.Unhurried(iwarp.QPConfig{}))
	set := iwarp.StreamAttr{MarkersReceive: off, MarkersSend: on, Version: iwarp.Version1}
	responded := rig.DialInBackground(t, func() error {
		n, err := respondByHand(b, mpa.ResponderConfig{}, mpa.Offer{IRD: 8, ORD: 8})
		if err != nil {
			return err
		}
		return res.ModifyRTS(b, n, &set)
	})
	ini := rig.NewEnd(t, iwarp.RNICConfig{})
	d := iwarp.Dialer{PD: ini.PD, QP: rig.Unhurried(iwarp.QPConfig{})}
	var err error
	if ini.QP, err = d.Initiate(rig.Within(t), a, nil); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, <-responded)
	rig.WorksBothWays(t, ini, res)
	if a := res.Query().Stream; a.MarkersSend != off {
		t.Errorf("markers are sent that the peer has not asked for: %+v", a)
	}
	rig.EndInOrder(t, ini, res)
	rig.Must(t, res.Modify(iwarp.StateIdle))
	if a := res.Query().Stream; a != set {
		t.Errorf("for the next connection: %+v, want %+v", a, set)
	}
}

// TestModifyRTSLater runs the startup through a bufio.Reader, with a deadline, which is
// long past when bytes come.
//
// Proves V04, Q13.
func TestModifyRTSLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		p := rig.NewPeer(t, a)
		_ = b.SetDeadline(time.Now().Add(time.Second))
		data := append(rig.Frame(rig.Request(1)), p.Message(rdmap.OpSend, 1, []byte("one"))...)
		p.Meanwhile(func() { p.Send(data) })
		r := bufio.NewReader(b)
		c := iwarp.Buffered(b, r)
		p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
		n, err := respondByHand(c, mpa.ResponderConfig{}, mpa.Offer{})
		rig.Must(t, err)
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		rig.Must(t, res.TwoReceives(rig.NewQP(t, res.PD, iwarp.QPConfig{})))
		rig.Must(t, res.ModifyRTS(c, n, nil))
		res.WantReceived(0, iwarp.StatusSuccess)
		time.Sleep(time.Hour) // of virtual time
		p.Send(p.Message(rdmap.OpSend, 2, []byte("two")))
		res.WantReceived(1, iwarp.StatusSuccess)
		_ = res.Abort()
	})
}

// TestModifyRTSRefused gives QPs what no startup comes to, or what they must not have.
// The connection stays with the caller, the QP as it was.
//
// Proves V04, N01, N02, N05.
func TestModifyRTSRefused(t *testing.T) {
	good := mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC6581, Revision: 2, PeerRevision: 2,
		DDPVersion: 1, RDMAPVersion: 1,
		CRC: true, IRD: 4, ORD: 4, SendFirst: true, PeerToPeer: true, RTR: mpa.RTRWrite,
	}
	old := good
	old.Dialect, old.Revision, old.PeerRevision, old.PeerToPeer = mpa.DialectRevision0, 0, 0, false
	old.DDPVersion, old.RDMAPVersion, old.MarkersReceive, old.MarkersSend = 0, 0, true, true
	change := func(n mpa.Negotiated, f func(*mpa.Negotiated)) mpa.Negotiated {
		f(&n)
		return n
	}
	attr := func(a iwarp.StreamAttr) *iwarp.StreamAttr { return &a }
	for _, c := range []struct {
		name string
		kind mpa.Kind
		n    mpa.Negotiated
		attr *iwarp.StreamAttr
		err  error
	}{
		{"nothing wrong", permissive, good, nil, nil},
		{"nothing wrong, version 0", permissive, old, attr(iwarp.StreamAttr{Version: iwarp.Version0}), nil},
		{"Start Key without markers", permissive, change(old,
			func(n *mpa.Negotiated) { n.Dialect, n.MarkersSend = mpa.DialectStartKey, false }), nil, nil},
		{"mixed versions", permissive, change(good,
			func(n *mpa.Negotiated) { n.RDMAPVersion = 0 }), nil, iwarp.ErrVersion},
		{"no such version", permissive, change(good,
			func(n *mpa.Negotiated) { n.DDPVersion, n.RDMAPVersion = 2, 2 }), nil, iwarp.ErrVersion},
		{"version 0, non-permissive", nonPermissive, old, nil, iwarp.ErrVersion},
		{"version 1, RDMAC", rdmac, good, nil, iwarp.ErrVersion},
		{"version 0, set to 1", permissive, old, attr(iwarp.StreamAttr{Version: iwarp.Version1}), iwarp.ErrVersion},
		{"version 1, set to 0", permissive, good, attr(iwarp.StreamAttr{Version: iwarp.Version0}), iwarp.ErrVersion},
		{"set to what the RNIC has not", nonPermissive, good,
			attr(iwarp.StreamAttr{Version: iwarp.Version0}), iwarp.ErrVersion},
		{"version 0 without markers received", permissive,
			change(old, func(n *mpa.Negotiated) { n.MarkersReceive = false }), nil, iwarp.ErrMarkersRequired},
		{"version 0 without markers sent", permissive, change(old, func(n *mpa.Negotiated) { n.MarkersSend = false }),
			nil, iwarp.ErrMarkersRequired},
		{"version 0 without CRC", permissive, change(old, func(n *mpa.Negotiated) { n.CRC = false }), nil,
			iwarp.ErrMarkersRequired},
		{"version 0, set without markers", permissive, old,
			attr(iwarp.StreamAttr{Version: iwarp.Version0, MarkersSend: off}), iwarp.ErrMarkersRequired},
		{"markers, set without", permissive, old, attr(iwarp.StreamAttr{MarkersReceive: off}),
			iwarp.ErrMarkersRequired},
		{"no role", permissive, change(good, func(n *mpa.Negotiated) { n.Role = 0 }), nil, iwarp.ErrInvalid},
		{"an Initiator that waits", permissive, change(good,
			func(n *mpa.Negotiated) { n.SendFirst = false }), nil, iwarp.ErrInvalid},
		{"no RTR indication", permissive, change(good, func(n *mpa.Negotiated) { n.RTR = 0 }), nil, iwarp.ErrInvalid},
		{"two RTR indications", permissive, change(good,
			func(n *mpa.Negotiated) { n.RTR = mpa.RTRRead | mpa.RTRWrite }), nil, iwarp.ErrInvalid},
		{"too large an IRD", permissive, change(good,
			func(n *mpa.Negotiated) { n.IRD = 0x4000 }), nil, iwarp.ErrInvalid},
		{"all of the RNIC's IRD", permissive, change(good, func(n *mpa.Negotiated) { n.IRD = 8 }), nil, nil},
		{"above the RNIC's IRD", permissive, change(good, func(n *mpa.Negotiated) { n.IRD = 9 }), nil, iwarp.ErrLimit},
	} {
		pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Kind: c.kind, Limits: iwarp.Limits{IRD: 8}}))
		qp := rig.NewQP(t, pd, iwarp.QPConfig{})
		before := qp.Query()
		a, b := rig.TCPPair(t)
		err := qp.ModifyRTS(a, c.n, c.attr)
		wantAttrError(t, c.name, err, c.err, "modify QP")
		if err == nil {
			if err := qp.ModifyRTS(a, c.n, nil); !errors.Is(err, iwarp.ErrBadState) {
				t.Errorf("%s: from RTS to RTS: %v", c.name, err)
			}
			_ = qp.Abort()
			continue
		}
		if qp.Query() != before {
			t.Errorf("%s: %+v has become %+v", c.name, before, qp.Query())
		}
		if err := qp.ModifyStream(iwarp.StreamAttr{}); err != nil {
			t.Errorf("%s: nothing can be set any more: %v", c.name, err)
		}
		talks := rig.DialInBackground(t, func() error { talk(t, a, "still", "here"); return nil })
		talk(t, b, "here", "still")
		<-talks
	}
}

// TestModifyRTSCRC: an RNIC that uses CRCs on all connections takes none that was negotiated without.
func TestModifyRTSCRC(t *testing.T) {
	n := mpa.Negotiated{Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1,
		DDPVersion: 1, RDMAPVersion: 1, SendFirst: true}
	for policy, want := range map[iwarp.CRCPolicy]error{iwarp.CRCAlways: iwarp.ErrInvalid, 0: nil} {
		qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{CRC: policy})), iwarp.QPConfig{})
		conn, _ := rig.TCPPair(t)
		if err := qp.ModifyRTS(conn, n, nil); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", policy, err, want)
		}
	}
}

// TestModifyRTSToTerminate gives a QP a connection that was negotiated in vain: the peer
// is told why.
//
// Proves E05, E10, V04.
func TestModifyRTSToTerminate(t *testing.T) {
	qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	a, b := rig.TCPPair(t)
	p := rig.NewPeer(t, b)
	negotiated := make(chan mpa.Negotiated, 1)
	go func() {
		n, err := initiateByHand(a, mpa.Offer{RTR: mpa.RTRWrite})
		rig.Should(t, err)
		negotiated <- n
	}()
	p.WantFrame(mpa.KeyRequest)
	f := rig.Reply(2)
	f.PrivateData = rig.Enhanced(mpa.Enhanced{A: true, D: true})
	p.Send(rig.Frame(f))
	rig.Must(t, qp.ModifyRTS(a, <-negotiated, nil))
	p.WantTerminate(rdmap.CodeMPANoMatchingRTR)
	p.Conn.Close()
	var term *iwarp.TerminateError
	if err := (&rig.End{T: t, QP: qp}).WantEnd(); !errors.As(err, &term) || term.Code != rdmap.CodeMPANoMatchingRTR {
		t.Error(err)
	}
}

// TestModifyRTSDepths leaves the depths to the consumer, who says nothing: they are the default.
//
// Proves V04.
func TestModifyRTSDepths(t *testing.T) {
	qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	a, _ := rig.TCPPair(t)
	rig.Must(t, qp.ModifyRTS(a, mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1, DDPVersion: 1,
		RDMAPVersion: 1, CRC: true, SendFirst: true,
		IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation,
	}, nil))
	if n := qp.Negotiated(); n.IRD != rig.ReadDepth || n.ORD != rig.ReadDepth {
		t.Errorf("IRD %v, ORD %v", n.IRD, n.ORD)
	}
	_ = qp.Abort()
}
