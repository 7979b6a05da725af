package iwarp_test

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestOptions brings up connections with all that the two sides can ask for, and
// has octets go over them.
//
// Proves E12, P45: what either consumer chose, for its application or for this
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
		name     string
		ini, res mpa.Offer
		want     want
	}{
		{"nothing asked for", mpa.Offer{}, mpa.Offer{}, usual},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, mpa.Offer{}, want{revision: 1, crc: true}},
		{"client-server", mpa.Offer{ClientServer: true}, mpa.Offer{}, want{revision: 2, crc: true}},
		{"nothing enhanced", mpa.Offer{ClientServer: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation}, mpa.Offer{}, want{revision: 1, crc: true}},
		{"RTR Write", mpa.Offer{RTR: mpa.RTRWrite}, mpa.Offer{}, usual},
		{"RTR Read", mpa.Offer{RTR: mpa.RTRRead}, mpa.Offer{}, want{2, true, mpa.RTRRead, false, false, true}},
		{"RTR Send", mpa.Offer{RTR: mpa.RTRSend}, mpa.Offer{}, want{2, true, mpa.RTRSend, false, false, true}},
		{"RTR as the Responder will", mpa.Offer{}, mpa.Offer{RTR: mpa.RTRRead}, want{2, true, mpa.RTRRead, false, false, true}},
		{"markers to the Initiator", mpa.Offer{Markers: true}, mpa.Offer{}, want{2, true, mpa.RTRWrite, true, false, true}},
		{"markers to the Responder", mpa.Offer{}, mpa.Offer{Markers: true}, want{2, true, mpa.RTRWrite, false, true, true}},
		{"markers both ways", mpa.Offer{Markers: true}, mpa.Offer{Markers: true}, want{2, true, mpa.RTRWrite, true, true, true}},
		{"markers in revision 1", mpa.Offer{Markers: true, Dialect: mpa.DialectRFC5044}, mpa.Offer{Markers: true}, want{revision: 1, toIni: true, toRes: true, crc: true}},
		{"no CRC", mpa.Offer{NoCRC: true}, mpa.Offer{NoCRC: true}, want{2, true, mpa.RTRWrite, false, false, false}},
		{"CRC by the Responder", mpa.Offer{NoCRC: true}, mpa.Offer{}, usual},
		{"CRC by the Initiator", mpa.Offer{}, mpa.Offer{NoCRC: true}, usual},
		{"markers without CRC", mpa.Offer{NoCRC: true, Markers: true}, mpa.Offer{NoCRC: true, Markers: true}, want{2, true, mpa.RTRWrite, true, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := setup{Dialer: iwarp.Dialer{MPA: c.ini}, accept: iwarp.AcceptConfig{MPA: c.res}}.connect(t)
			works(t, ini, res)
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
			finish(t, ini, res)
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
		ini, res         mpa.Offer
		wantIni, wantRes depths
	}{
		{"default", mpa.Offer{}, mpa.Offer{}, depths{32, 32}, depths{32, 32}},
		{"equal", mpa.Offer{IRD: 4, ORD: 4}, mpa.Offer{IRD: 4, ORD: 4}, depths{4, 4}, depths{4, 4}},
		{"the Initiator wants more and gets it", mpa.Offer{IRD: 8, ORD: 100}, mpa.Offer{IRD: 4, ORD: 4}, depths{8, 100}, depths{100, 4}},
		{"the Initiator wants more than there is", mpa.Offer{IRD: 8, ORD: 200}, mpa.Offer{IRD: 4, ORD: 4}, depths{8, 128}, depths{128, 4}},
		{"the Responder lowers its ORD", mpa.Offer{IRD: 2, ORD: 2}, mpa.Offer{IRD: 16, ORD: 16}, depths{2, 2}, depths{16, 2}},
		{"the Responder's IRD does not grow", mpa.Offer{IRD: 1, ORD: 50}, mpa.Offer{IRD: 9, ORD: 1, MaxIRD: 9}, depths{1, 9}, depths{9, 1}},
		{"the largest", mpa.Offer{IRD: none - 1, ORD: none - 1}, mpa.Offer{IRD: none - 1, ORD: none - 1}, depths{none - 1, none - 1}, depths{none - 1, none - 1}},
		{"no negotiation", mpa.Offer{IRD: none, ORD: none}, mpa.Offer{}, depths{32, 32}, depths{32, 32}},
		{"no negotiation by the Responder", mpa.Offer{IRD: 5, ORD: 5}, mpa.Offer{IRD: none, ORD: none}, depths{5, 5}, depths{32, 5}},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044, IRD: 3, ORD: 6}, mpa.Offer{IRD: 7, ORD: 2}, depths{3, 6}, depths{7, 2}},
		{"one way only", mpa.Offer{IRD: 6}, mpa.Offer{ORD: 6}, depths{6, 0}, depths{1, 6}}, // 1 for an RTR Read
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := setup{Dialer: iwarp.Dialer{MPA: c.ini}, accept: iwarp.AcceptConfig{MPA: c.res}}.connect(t)
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
			if n := res.Negotiated(); n.Enhanced && c.ini.IRD > 0 && (n.PeerIRD != c.ini.IRD || n.PeerORD != c.ini.ORD) {
				t.Errorf("the Responder was told %d and %d of its peer, want %d and %d", n.PeerIRD, n.PeerORD, c.ini.IRD, c.ini.ORD)
			}
			works(t, ini, res)
		})
	}
}

// TestNoReads offers no Reads at all: a depth of zero stays zero.
func TestNoReads(t *testing.T) {
	ini, _ := setup{Dialer: iwarp.Dialer{NoReads: true}, accept: iwarp.AcceptConfig{NoReads: true}}.connect(t)
	if a := ini.Query(); a.IRD != 0 || a.ORD != 0 {
		t.Errorf("IRD %d and ORD %d", a.IRD, a.ORD)
	}
	sink := ini.mr(8, iwarp.LocalWrite)
	_, err := ini.Read(within(t), sink.Slice(0, 8), iwarp.Remote{STag: 5})
	var wc *iwarp.WCError
	if !errors.As(err, &wc) || wc.Status != iwarp.StatusNoReadResources {
		t.Errorf("a Read with an ORD of zero: %v", err)
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
		there, back := pattern(c.n, 3), pattern(c.n, 5)
		ini, res := setup{
			Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: dialectOf(t, c.revision), PrivateData: there}},
			accept: iwarp.AcceptConfig{MPA: mpa.Offer{PrivateData: back}},
		}.connect(t)
		if got := res.Negotiated().PrivateData; !bytes.Equal(got, there) {
			t.Errorf("revision %d, %d octets: the Responder got %d", c.revision, c.n, len(got))
		}
		if got := ini.Negotiated().PrivateData; !bytes.Equal(got, back) {
			t.Errorf("revision %d, %d octets: the Initiator got %d", c.revision, c.n, len(got))
		}
		works(t, ini, res)
	}
}

// TestTooMuchPrivateData refuses an offer before anything is sent; a Request can
// be answered again.
//
// Proves Q08.
func TestTooMuchPrivateData(t *testing.T) {
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: make([]byte, 509)}}
	ln := listen(t, iwarp.ListenConfig{})
	if _, err := d.Dial(within(t), "tcp", ln.Addr().String()); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("509 octets in revision 2: %v", err)
	}
	p := dialPeer(t, ln.Addr())
	p.send(frame(request(1)))
	req, err := ln.Accept(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := req.Accept(within(t), iwarp.AcceptConfig{MPA: mpa.Offer{PrivateData: make([]byte, 513)}}); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("513 octets in revision 1: %v", err)
	}
	if _, err := req.Reject(make([]byte, 512)); err != nil {
		t.Error(err)
	}
	if f := p.wantFrame(mpa.KeyReply); !f.R() || len(f.ULPData()) != 512 {
		t.Errorf("got %v", f)
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
		ird, ord uint16
		p2p      bool
		ulp      string
	}{
		{"revision 1", request(1, 'h', 'i'), 1, mpa.DialectRFC5044, mpa.NoNegotiation, mpa.NoNegotiation, false, "hi"},
		{"revision 1 with S", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, S: true, PrivateData: []byte("data")}, 1, mpa.DialectRFC5044, mpa.NoNegotiation, mpa.NoNegotiation, false, "data"},
		{"revision 2", request(2, 'h', 'o'), 2, mpa.DialectRFC6581, 8, 8, true, "ho"},
		{"revision 2 without S", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, PrivateData: []byte("plain")}, 2, mpa.DialectRFC5044, mpa.NoNegotiation, mpa.NoNegotiation, false, "plain"},
		{"a higher revision", request(9), 9, mpa.DialectRFC6581, 8, 8, true, ""},
		{"all depths set", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, S: true, PrivateData: []byte{0xff, 0xff, 0xff, 0xff}}, 2, mpa.DialectRFC6581, mpa.NoNegotiation, mpa.NoNegotiation, true, ""},
		{"B, C, D without A", mpa.StartupFields{Key: mpa.KeyRequest, Rev: 2, S: true, PrivateData: []byte{0x40, 1, 0xc0, 2}}, 2, mpa.DialectRFC6581, 1, 2, false, ""},
	} {
		ln := listen(t, iwarp.ListenConfig{})
		p := dialPeer(t, ln.Addr())
		p.send(frame(c.f))
		r, err := ln.Accept(within(t))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Revision() != c.revision || r.Dialect() != c.dialect || r.IRD() != c.ird || r.ORD() != c.ord || r.PeerToPeer() != c.p2p || string(r.PrivateData()) != c.ulp {
			t.Errorf("%s: got %v", c.name, r.MPA().Frame)
		}
		if r.RemoteAddr().String() != p.conn.LocalAddr().String() || r.LocalAddr().String() != ln.Addr().String() {
			t.Errorf("%s: addresses %v and %v", c.name, r.RemoteAddr(), r.LocalAddr())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		p.wantClosed()
		if _, err := r.Accept(within(t), iwarp.AcceptConfig{}); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("%s: Accept after Close: %v", c.name, err)
		}
	}
}

// TestHugeIRDs has a peer ask for all the Reads that 14 bits can say: the Responder
// makes room for no more than it is willing to.
//
// Proves E14, Z29.
func TestHugeIRDs(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 16}})
	ini, res := setup{
		Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 0x3ffe, ORD: 0x3ffe}},
		accept: iwarp.AcceptConfig{PD: newPD(t, rnic)},
	}.connect(t)
	if r, i := res.Query(), ini.Query(); r.IRD != 16 || i.ORD != 16 {
		t.Errorf("IRD %d, and the peer's ORD %d", r.IRD, i.ORD)
	}
	works(t, ini, res)
}

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
	}{
		{"no common RTR", mpa.Offer{RTR: mpa.RTRWrite}, mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 1}, rdmap.CodeMPANoMatchingRTR},
		{"no RTR at all", mpa.Offer{}, mpa.Enhanced{A: true, IRD: 1, ORD: 1}, rdmap.CodeMPANoMatchingRTR},
		{"A cleared", mpa.Offer{}, mpa.Enhanced{C: true, IRD: 1, ORD: 1}, rdmap.CodeMPANoMatchingRTR},
		{"too large an ORD", mpa.Offer{IRD: 4, ORD: 4}, mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 200}, rdmap.CodeMPAInsufficientIRD},
	} {
		t.Run(c.name, func(t *testing.T) {
			pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
			qp, err := pd.CreateQP(iwarp.QPConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ln := listenTCP(t)
			d := iwarp.Dialer{MPA: c.offer}
			dialed := dialInBackground(t, func() error { return d.Connect(within(t), qp, "tcp", ln.Addr().String()) })
			p := acceptPeer(t, ln)
			p.wantFrame(mpa.KeyRequest)
			p.send(frame(mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 2, PrivateData: enhanced(c.reply)}))
			p.wantTerminate(c.code)
			p.wantClosed()
			p.conn.Close()
			var term *iwarp.TerminateError
			if err := <-dialed; !errors.As(err, &term) || term.Code != c.code || term.Remote {
				t.Errorf("Connect: %v", err)
			}
			if s := pd.RNIC().Stats().Startup; s.Failed[c.code.String()] != 1 || s.Established != 0 {
				t.Errorf("counted %+v", s)
			}
			if qp.State() != iwarp.StateIdle {
				t.Errorf("the QP is in state %v", qp.State())
			}
		})
	}
}

// TestFailedEstablishment has the Initiator's QP go away during the startup.
//
// Proves E11.
func TestFailedEstablishment(t *testing.T) {
	qp, err := newPD(t, newRNIC(t, iwarp.RNICConfig{})).CreateQP(iwarp.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ln := listenTCP(t)
	dialed := dialInBackground(t, func() error { return new(iwarp.Dialer).Connect(within(t), qp, "tcp", ln.Addr().String()) })
	p := acceptPeer(t, ln)
	p.wantFrame(mpa.KeyRequest)
	if err := qp.Close(); err != nil {
		t.Error(err)
	}
	p.send(frame(reply(2)))
	p.wantTerminate(rdmap.CodeMPALocalCatastrophic)
	p.conn.Close()
	if err := <-dialed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Connect: %v", err)
	}
}

// TestFailedAccept has the Responder's QP go away while a frame is awaited behind the
// answer. After an Rtr frame it may tell the peer why; after a Start Key it has to wait
// for an FPDU that does not come, and closes in order.
//
// Proves E11, Q11, T03, K03.
func TestFailedAccept(t *testing.T) {
	for _, c := range owings() {
		qp := create(t, newPD(t, newRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
		ln := listen(t, c.cfg)
		p := dialPeer(t, ln.Addr())
		p.send(c.first)
		req, err := ln.Accept(within(t))
		if err != nil {
			t.Fatal(err)
		}
		accepted := dialInBackground(t, func() error { return req.AcceptQP(within(t), qp, iwarp.AcceptConfig{}) })
		c.answer(p)
		if err := qp.Close(); err != nil {
			t.Error(err)
		}
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
	if err := new(iwarp.Dialer).Connect(within(t), ini.QP, "tcp", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a connected QP: %v", err)
	}
	qp, err := ini.pd.CreateQP(iwarp.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ln := listenTCP(t)
	dialed := dialInBackground(t, func() error { return new(iwarp.Dialer).Connect(within(t), qp, "tcp", ln.Addr().String()) })
	p := acceptPeer(t, ln)
	p.wantFrame(mpa.KeyRequest)
	if err := new(iwarp.Dialer).Connect(within(t), qp, "tcp", ln.Addr().String()); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a QP that is being connected: %v", err)
	}
	p.send(frame(reply(2)))
	if err := <-dialed; err != nil {
		t.Error(err)
	}
	p.want(rdmap.OpWrite)
}

// dialInBackground runs the Initiator's side while the test plays the Responder.
func dialInBackground(t testing.TB, dial func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- dial() }()
	return done
}

// acceptPeer plays a Responder for one connection.
func acceptPeer(t testing.TB, ln net.Listener) *peer {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return newPeer(t, c)
}
