package startup

import (
	"bufio"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestVerify has the consumer look at the Reply before anything follows it. What it refuses does not come up,
// not a byte is sent for it, and the TCP connection is the consumer's.
//
// Proves Q10.
func TestVerify(t *testing.T) {
	refusal := errors.New("not the server we know")
	rtr := rig.Reply(1, 'm', 'e')
	rtr.S = true
	for _, c := range []struct {
		name  string
		offer mpa.Offer
		reply []byte
		want  mpa.Dialect
	}{
		{"revision 2", mpa.Offer{}, rig.Frame(rig.Reply(2, 'm', 'e')), mpa.DialectRFC6581},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, rig.Frame(rig.Reply(1, 'm', 'e')), mpa.DialectRFC5044},
		{"Rtr frame", mpa.Offer{Dialect: mpa.DialectRtr}, rig.Frame(rtr), mpa.DialectRtr},
	} {
		for _, refuse := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
				d := iwarp.Dialer{PD: rig.NewPD(t, rnic), MPA: c.offer, Verify: func(n mpa.Negotiated) error {
					if string(n.PrivateData) != "me" || n.Dialect != c.want ||
						n.Dialect == mpa.DialectRFC6581 && n.PeerIRD != 8 {
						t.Errorf("%s: Verify got %+v", c.name, n)
					}
					if refuse {
						return refusal
					}
					return nil
				}}
				p, outcome := initiateTo(t.Context(), t, d)
				p.WantFrame(mpa.KeyRequest)
				p.Send(c.reply)
				if !refuse {
					if c.want == mpa.DialectRtr {
						p.WantFrame(mpa.KeyRtr)
					}
					if err := <-outcome; err != nil {
						t.Errorf("%s: %v", c.name, err)
					}
					return
				}
				var v *iwarp.VerifyError
				if err := <-outcome; !errors.As(err, &v) || !errors.Is(err, refusal) {
					t.Errorf("%s: got %v", c.name, err)
					return
				}
				p.WantSilence()
				go v.Conn.Write([]byte("bye"))
				p.WantBytes([]byte("bye"))
				p.Meanwhile(func() { p.Send([]byte("well")) })
				if got := make([]byte, 4); !readFull(v.Conn, got) || string(got) != "well" {
					t.Errorf("%s: %q came over the connection that was handed over", c.name, got)
				}
				if s := rnic.Stats(); s.Startup.Rejected != 1 || s.Startup.Established != 0 || s.QPs != 0 {
					t.Errorf("%s: counted %+v", c.name, s.Startup)
				}
			})
		}
	}
}

func readFull(r io.Reader, b []byte) bool {
	_, err := io.ReadFull(r, b)
	return err == nil
}

// TestCRCPolicy: the RNIC's policy decides over what the two offers say of CRCs, and a peer's wish over both.
//
// Proves F13, F14.
func TestCRCPolicy(t *testing.T) {
	for _, c := range []struct {
		policy iwarp.CRCPolicy
		noCRC  bool // the offers'
		peerC  bool
		wantC  bool // in our frame
		want   bool // in force
	}{
		{iwarp.CRCByOffer, false, false, true, true},
		{iwarp.CRCByOffer, true, false, false, false},
		{iwarp.CRCByOffer, true, true, false, true},
		{iwarp.CRCAlways, true, false, true, true},
		{iwarp.CRCUnwanted, false, false, false, false},
		{iwarp.CRCUnwanted, false, true, false, true},
	} {
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{CRC: c.policy})
		offer := mpa.Offer{Dialect: mpa.DialectRFC5044, NoCRC: c.noCRC}
		synctest.Test(t, func(t *testing.T) {
			a, b := rig.NewPipe(t)
			p := rig.NewPeer(t, a)
			dialed := rig.DialInBackground(t, func() error {
				qp, err := (&iwarp.Dialer{PD: rig.NewPD(t, rnic), MPA: offer}).Initiate(t.Context(), b, nil)
				if err == nil && qp.Negotiated().CRC != c.want {
					t.Errorf("%v: CRC %t", c, qp.Negotiated().CRC)
				}
				_ = qp.Abort()
				return err
			})
			if f := p.WantFrame(mpa.KeyRequest); f.C() != c.wantC {
				t.Errorf("%v: Request %v", c, f)
			}
			f := rig.Reply(1)
			f.C = c.peerC
			p.Send(rig.Frame(f))
			rig.Should(t, <-dialed)
		})
		synctest.Test(t, func(t *testing.T) {
			f := rig.Request(1)
			f.C = c.peerC
			p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{RNIC: rnic}, rig.Frame(f))
			accepted := rig.DialInBackground(t, func() error {
				qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{MPA: offer.Answer()})
				if err == nil && qp.Negotiated().CRC != c.want {
					t.Errorf("%v: CRC %t", c, qp.Negotiated().CRC)
				}
				_ = qp.Abort()
				return err
			})
			if f := p.WantFrame(mpa.KeyReply); f.C() != c.want { // a Reply says what will be
				t.Errorf("%v: Reply %v", c, f)
			}
			rig.Should(t, <-accepted)
		})
	}
}

// TestEarly: bytes after a Request and before our Reply are refused, or taken for the first FPDU where the
// Listener is set so. A peer that waits for the Reply notices nothing of it.
func TestEarly(t *testing.T) {
	for _, c := range []struct {
		tolerate, early bool
	}{{true, true}, {false, true}, {false, false}} {
		a, b := rig.TCPPair(t)
		p := rig.NewPeer(t, a)
		data := append([]byte(hello), rig.Frame(rig.Request(2))...)
		if c.early {
			data = append(data, p.Write(1, 0, nil)...)
		}
		p.Send(data)
		r := bufio.NewReaderSize(b, 16) // a part of the bytes is ahead in it, and the rest in the socket
		if s, err := r.ReadString('\n'); s != hello {
			t.Fatalf("streamed %q (%v)", s, err)
		}
		req, err := (&iwarp.ListenConfig{TolerateEarly: c.tolerate}).Respond(rig.Within(t), iwarp.Buffered(b, r), nil)
		rig.Must(t, err)
		qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		if c.early && !c.tolerate {
			if !errors.Is(err, iwarp.ErrEarly) {
				t.Errorf("%+v: got %v", c, err)
			}
			p.WantClosed()
			continue
		}
		rig.Must(t, err)
		p.WantFrame(mpa.KeyReply)
		_ = qp.Abort()
	}
}
