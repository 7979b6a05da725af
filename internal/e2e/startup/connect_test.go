package startup

import (
	"bytes"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestOptions brings up connections with all that the two sides can ask for, and
// has bytes go over them.
//
// Proves E09, E12, E16, P45: what either consumer chose, for its application or for this
// connection, is what the connection has.
func TestOptions(t *testing.T) {
	type want struct {
		revision     uint8
		peerToPeer   bool
		rtr          mpa.RTR // of the Initiator
		toIni, toRes bool    // markers
		crc          bool
	}
	usual := want{revision: 2, peerToPeer: true, rtr: mpa.RTRWrite, crc: true}
	for _, c := range []struct {
		name string
		ini  mpa.Offer
		res  mpa.Answer
		want want
	}{
		{"nothing asked for", mpa.Offer{}, mpa.Answer{}, usual},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, mpa.Answer{}, want{revision: 1, crc: true}},
		{"client-server", mpa.Offer{ClientServer: true}, mpa.Answer{}, want{revision: 2, crc: true}},
		{"nothing enhanced", mpa.Offer{ClientServer: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation},
			mpa.Answer{}, want{revision: 1, crc: true}},
		{"RTR Write", mpa.Offer{RTR: mpa.RTRWrite}, mpa.Answer{}, usual},
		{"RTR Read", mpa.Offer{RTR: mpa.RTRRead}, mpa.Answer{}, want{2, true, mpa.RTRRead, false, false, true}},
		{"RTR Send", mpa.Offer{RTR: mpa.RTRSend}, mpa.Answer{}, want{2, true, mpa.RTRSend, false, false, true}},
		{"RTR Read, as the Responder will", mpa.Offer{}, mpa.Answer{RTR: mpa.RTRRead},
			want{2, true, mpa.RTRRead, false, false, true}},
		{"RTR Send, as the Responder will", mpa.Offer{}, mpa.Answer{RTR: mpa.RTRSend},
			want{2, true, mpa.RTRSend, false, false, true}},
		{"RTR Read or Send, as the Responder will", mpa.Offer{}, mpa.Answer{RTR: mpa.RTRRead | mpa.RTRSend},
			want{2, true, mpa.RTRRead, false, false, true}},
		{"markers to the Initiator", mpa.Offer{Markers: true}, mpa.Answer{},
			want{2, true, mpa.RTRWrite, true, false, true}},
		{"markers to the Responder", mpa.Offer{}, mpa.Answer{Markers: true},
			want{2, true, mpa.RTRWrite, false, true, true}},
		{"markers both ways", mpa.Offer{Markers: true}, mpa.Answer{Markers: true},
			want{2, true, mpa.RTRWrite, true, true, true}},
		{"markers in revision 1", mpa.Offer{Markers: true, Dialect: mpa.DialectRFC5044}, mpa.Answer{Markers: true},
			want{revision: 1, toIni: true, toRes: true, crc: true}},
		{"no CRC", mpa.Offer{NoCRC: true}, mpa.Answer{NoCRC: true}, want{2, true, mpa.RTRWrite, false, false, false}},
		{"CRC by the Responder", mpa.Offer{NoCRC: true}, mpa.Answer{}, usual},
		{"CRC by the Initiator", mpa.Offer{}, mpa.Answer{NoCRC: true}, usual},
		{"markers without CRC", mpa.Offer{NoCRC: true, Markers: true}, mpa.Answer{NoCRC: true, Markers: true},
			want{2, true, mpa.RTRWrite, true, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: c.ini}, Accept: iwarp.AcceptConfig{MPA: c.res}}.Connect(t)
			rig.Works(t, ini, res)
			i, r := ini.Negotiated(), res.Negotiated()
			got := want{i.Revision, i.PeerToPeer, i.RTR, i.MarkersReceive, i.MarkersSend, i.CRC}
			if got != c.want {
				t.Errorf("the Initiator has %+v, want %+v", got, c.want)
			}
			got = want{r.Revision, r.PeerToPeer, c.want.rtr, r.MarkersSend, r.MarkersReceive, r.CRC}
			if got != c.want || r.RTR&c.want.rtr != c.want.rtr {
				t.Errorf("the Responder has %+v and RTR %v, want %+v", got, r.RTR, c.want)
			}
			if i.Role != mpa.RoleInitiator || r.Role != mpa.RoleResponder || i.FellBack {
				t.Errorf("roles %v and %v, fell back: %v", i.Role, r.Role, i.FellBack)
			}
			rig.Finish(t, ini, res)
		})
	}
}

// TestDepths checks which IRD and ORD are in force, and what is told of the
// peer's.
//
// Proves E03, P45, Z29.
func TestDepths(t *testing.T) {
	const none = mpa.NoNegotiation
	type depths struct{ ird, ord int }
	for _, c := range []struct {
		name             string
		ini              mpa.Offer
		res              mpa.Answer
		wantIni, wantRes depths
	}{
		{"default", mpa.Offer{}, mpa.Answer{}, depths{32, 32}, depths{32, 32}},
		{"equal", mpa.Offer{IRD: 4, ORD: 4}, mpa.Answer{IRD: 4, ORD: 4}, depths{4, 4}, depths{4, 4}},
		{"the Initiator wants more and gets it", mpa.Offer{IRD: 8, ORD: 100}, mpa.Answer{IRD: 4, ORD: 4},
			depths{8, 100}, depths{100, 4}},
		{"the Initiator wants more than there is", mpa.Offer{IRD: 8, ORD: 200}, mpa.Answer{IRD: 4, ORD: 4},
			depths{8, 128}, depths{128, 4}},
		{"the Responder lowers its ORD", mpa.Offer{IRD: 2, ORD: 2}, mpa.Answer{IRD: 16, ORD: 16},
			depths{2, 2}, depths{16, 2}},
		{"the Responder's IRD does not grow", mpa.Offer{IRD: 1, ORD: 50}, mpa.Answer{IRD: 9, ORD: 1, MaxIRD: 9},
			depths{1, 9}, depths{9, 1}},
		{"the largest", mpa.Offer{IRD: mpa.MaxDepth, ORD: mpa.MaxDepth},
			mpa.Answer{IRD: mpa.MaxDepth, ORD: mpa.MaxDepth}, depths{int(mpa.MaxDepth), int(mpa.MaxDepth)},
			depths{int(mpa.MaxDepth), int(mpa.MaxDepth)}},
		{"no negotiation", mpa.Offer{IRD: none, ORD: none}, mpa.Answer{}, depths{32, 32}, depths{32, 32}},
		{"no negotiation by the Responder", mpa.Offer{IRD: 5, ORD: 5}, mpa.Answer{IRD: none, ORD: none},
			depths{5, 5}, depths{32, 5}},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044, IRD: 3, ORD: 6}, mpa.Answer{IRD: 7, ORD: 2},
			depths{3, 6}, depths{7, 2}},
		{"one way only", mpa.Offer{IRD: 6}, mpa.Answer{ORD: 6}, depths{6, 0}, depths{1, 6}}, // 1 for an RTR Read
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: c.ini}, Accept: iwarp.AcceptConfig{MPA: c.res}}.Connect(t)
			i, r := ini.Query(), res.Query()
			if got := (depths{i.IRD, i.ORD}); got != c.wantIni {
				t.Errorf("the Initiator has %+v, want %+v", got, c.wantIni)
			}
			if got := (depths{r.IRD, r.ORD}); got != c.wantRes {
				t.Errorf("the Responder has %+v, want %+v", got, c.wantRes)
			}
			if n := ini.Negotiated(); n.Enhanced && (i.ORD > r.IRD || r.ORD > i.IRD) {
				t.Errorf("the ORDs exceed the peers' IRDs: %+v, %+v", i, r)
			}
			if n := res.Negotiated(); n.Enhanced && c.ini.IRD > 0 &&
				(n.PeerIRD != c.ini.IRD || n.PeerORD != c.ini.ORD) {
				t.Errorf("the Responder was told %d and %d of its peer, want %d and %d",
					n.PeerIRD, n.PeerORD, c.ini.IRD, c.ini.ORD)
			}
			rig.Works(t, ini, res)
		})
	}
}

// TestNoReads offers no Reads at all: a depth of zero stays zero.
func TestNoReads(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{NoReads: true}, Accept: iwarp.AcceptConfig{NoReads: true}}.Connect(t)
	if a := ini.Query(); a.IRD != 0 || a.ORD != 0 {
		t.Errorf("IRD %d and ORD %d", a.IRD, a.ORD)
	}
	sink := ini.MR(8, iwarp.LocalWrite)
	if _, err := ini.Read(rig.Within(t), sink.Slice(0, 8), iwarp.Remote{STag: 5}); !errors.Is(err, iwarp.ErrNoReads) {
		t.Errorf("a Read with an ORD of zero: %v", err)
	}
	res.MustPostRecv(1)
	rig.Must(t, ini.Send(rig.Within(t), iwarp.SGE{}))
	res.WantReceived(1, iwarp.StatusSuccess)
}

// TestNoReadsOfResponder has a Responder that wants no Reads, and an Initiator as they usually are.
func TestNoReadsOfResponder(t *testing.T) {
	for _, c := range []struct {
		offered  mpa.RTR
		ird, ord int
	}{{0, 0, 0}, {mpa.RTRWrite, 0, 0}, {mpa.RTRSend, 0, 0}, {mpa.RTRRead, 1, 1}, {mpa.RTRRead | mpa.RTRSend, 1, 1}} {
		s := rig.Setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{RTR: c.offered}}, Accept: iwarp.AcceptConfig{NoReads: true}}
		ini, res := s.Connect(t)
		if ird, ord := res.Query().IRD, ini.Query().ORD; ird != c.ird || ord != c.ord {
			t.Errorf("an Initiator that offers %v: IRD %d and its ORD %d, want %d and %d",
				c.offered, ird, ord, c.ird, c.ord)
		}
		if a := res.Query(); a.ORD != 0 {
			t.Errorf("the Responder's ORD is %d", a.ORD)
		}
		if c.ord == 0 {
			err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Remote: res.MR(8, iwarp.RemoteRead).Remote(0)})
			rig.WantSaid(t, "a Read", err, iwarp.ErrNoReads)
		}
	}
}

// TestPrivateData carries private data both ways, of every length that there is
// room for.
//
// Proves Q08, Q13.
func TestPrivateData(t *testing.T) {
	for _, c := range []struct {
		revision uint8
		n        int
	}{{1, 0}, {1, 1}, {1, 512}, {2, 0}, {2, 3}, {2, 4}, {2, 252}, {2, 508}} {
		there, back := rig.Pattern(c.n, 3), rig.Pattern(c.n, 5)
		ini, res := rig.Setup{
			Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: rig.DialectOf(t, c.revision), PrivateData: there}},
			Accept: iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: back}},
		}.Connect(t)
		if got := res.Negotiated().PrivateData; !bytes.Equal(got, there) {
			t.Errorf("revision %d, %d bytes: the Responder got %d", c.revision, c.n, len(got))
		}
		if got := ini.Negotiated().PrivateData; !bytes.Equal(got, back) {
			t.Errorf("revision %d, %d bytes: the Initiator got %d", c.revision, c.n, len(got))
		}
		rig.Works(t, ini, res)
	}
}

// TestTooMuchPrivateData refuses an offer before anything is sent; a Request can
// be answered again.
//
// Proves Q08.
func TestTooMuchPrivateData(t *testing.T) {
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: make([]byte, 509)}}
	ln := rig.Listen(t, iwarp.ListenConfig{})
	if _, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String()); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("509 bytes in revision 2: %v", err)
	}
	p, req := rig.Ask(t, ln, rig.Frame(rig.Request(1)))
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: make([]byte,
		513)}}); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("513 bytes in revision 1: %v", err)
	}
	if err := req.Reject(make([]byte, 512)); err != nil {
		t.Error(err)
	}
	if f := p.WantFrame(mpa.KeyReply); !f.R() || len(f.ULPData()) != 512 {
		t.Errorf("got %v", f)
	}
}

// TestAllRTR has a peer offer an RTR indication by a Write: our Reply names that alone, or every kind where the
// AcceptConfig or its preset wants it so.
//
// Proves E08.
func TestAllRTR(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  iwarp.AcceptConfig
		want []byte // bits A and B, C and D
	}{
		"default":    {iwarp.AcceptConfig{}, []byte{0x80, 0x80}},
		"config":     {iwarp.AcceptConfig{MPA: mpa.Answer{AllRTR: true}}, []byte{0xc0, 0xc0}},
		"preset":     {iwarp.AcceptConfig{Preset: &iwarp.Preset{Accept: mpa.Answer{AllRTR: true}}}, []byte{0xc0, 0xc0}},
		"preset, no": {iwarp.AcceptConfig{Preset: &iwarp.Preset{}}, []byte{0x80, 0x80}},
	} {
		first := mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 2, S: true, PrivateData: []byte{0x80, 8, 0x80, 8}}
		p, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{}), rig.Frame(first))
		qp, err := req.Accept(rig.Within(t), c.cfg)
		rig.Must(t, err)
		data := p.WantFrame(mpa.KeyReply).Fields().PrivateData
		if got := []byte{data[0] & 0xc0, data[2] & 0xc0}; !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", name, got, c.want)
		}
		_ = qp.Abort()
	}
}

// TestRequest shows the consumer of the Responder all that the peer said before
// it decides.
//
// Proves Q07, Q08, E03, E14.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		name     string
		f        mpa.StartupFields
		revision uint8
		dialect  mpa.Dialect
		ird, ord mpa.Depth
		p2p      bool
		ulp      string
	}{
		{"revision 1", rig.Request(1, 'h', 'i'), 1, mpa.DialectRFC5044, mpa.NoNegotiation,
			mpa.NoNegotiation, false, "hi"},
		{"revision 1 with S", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, S: true, PrivateData: []byte("data")}, 1,
			mpa.DialectRFC5044, mpa.NoNegotiation, mpa.NoNegotiation, false, "data"},
		{"revision 2", rig.Request(2, 'h', 'o'), 2, mpa.DialectRFC6581, 8, 8, true, "ho"},
		{"revision 2 without S", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, PrivateData: []byte("plain")}, 2,
			mpa.DialectRFC5044, mpa.NoNegotiation, mpa.NoNegotiation, false, "plain"},
		{"a higher revision", rig.Request(9), 9, mpa.DialectRFC6581, 8, 8, true, ""},
		{"all depths set", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, S: true,
			PrivateData: []byte{0xff, 0xff, 0xff, 0xff}}, 2, mpa.DialectRFC6581, mpa.NoNegotiation,
			mpa.NoNegotiation, true, ""},
		{"B, C, D without A", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, S: true,
			PrivateData: []byte{0x40, 1, 0xc0, 2}}, 2, mpa.DialectRFC6581, 1, 2, false, ""},
	} {
		ln := rig.Listen(t, iwarp.ListenConfig{})
		p := rig.DialPeer(t, ln.Addr())
		p.Send(rig.Frame(c.f))
		r, err := ln.Accept(rig.Within(t))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m := r.MPA()
		if m.Revision != c.revision || m.Dialect != c.dialect || m.IRD != c.ird || m.ORD != c.ord ||
			m.PeerToPeer != c.p2p || string(r.PrivateData()) != c.ulp {
			t.Errorf("%s: got %v", c.name, m.Frame)
		}
		if r.RemoteAddr().String() != p.Conn.LocalAddr().String() || r.LocalAddr().String() != ln.Addr().String() {
			t.Errorf("%s: addresses %v and %v", c.name, r.RemoteAddr(), r.LocalAddr())
		}
		rig.Should(t, r.Close())
		p.WantClosed()
		if _, err := r.Accept(rig.Within(t), iwarp.AcceptConfig{}); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("%s: Accept after Close: %v", c.name, err)
		}
	}
}

// TestHugeIRDs has a peer ask for all the Reads that 14 bits can say: the Responder
// makes room for no more than it is willing to.
//
// Proves E14, Z29.
func TestHugeIRDs(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 16}})
	ini, res := rig.Setup{
		Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 0x3ffe, ORD: 0x3ffe}},
		Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic)},
	}.Connect(t)
	if r, i := res.Query(), ini.Query(); r.IRD != 16 || i.ORD != 16 {
		t.Errorf("IRD %d, and the peer's ORD %d", r.IRD, i.ORD)
	}
	rig.Works(t, ini, res)
}

// acceptInBackground accepts while the test plays the Initiator.
func acceptInBackground(t testing.TB, req *iwarp.Request) <-chan error {
	return rig.DialInBackground(t, func() error {
		_, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		return err
	})
}

// dialPeerInBackground has a Dialer connect a QP to a peer, whose turn it is after the Request.
func dialPeerInBackground(t testing.TB, qp *iwarp.QP) (*rig.Peer, string, <-chan error) {
	t.Helper()
	ln := rig.ListenTCP(t)
	addr := ln.Addr().String()
	dialed := rig.DialInBackground(t, func() error { return new(iwarp.Dialer).DialQP(rig.Within(t), qp, "tcp", addr) })
	p := rig.AcceptRequest(t, ln)
	return p, addr, dialed
}
