package startup

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// revision0 is what an RDMAC RNIC sends.
func revision0(key string, ulp ...byte) mpa.StartupFields {
	return mpa.StartupFields{Key: key, M: true, C: true, PrivateData: ulp}
}

// TestRevision0Refused sends a non-permissive Listener a Request of revision 0, with
// bytes after it. It answers with a Reply of revision 1, and then closes in order:
// a RST would take the Reply with it.
//
// Proves N04, N03, Q07.
func TestRevision0Refused(t *testing.T) {
	for _, c := range []struct {
		cfg     iwarp.ListenConfig
		markers bool // the RNIC's preference
		after   int
		m, c    bool // of the Reply
	}{
		{iwarp.ListenConfig{}, false, 0, false, true},
		{iwarp.ListenConfig{}, true, 1, true, true},
		{iwarp.ListenConfig{Markers: true, NoCRC: true}, false, 3000, true, false},
		{iwarp.ListenConfig{}, false, 100000, false, true},
	} {
		c.cfg.RNIC = rig.NewRNIC(t, iwarp.RNICConfig{Kind: nonPermissive, Markers: c.markers})
		ln := rig.Listen(t, c.cfg)
		p := rig.DialPeer(t, ln.Addr())
		p.Send(append(rig.Frame(revision0(mpa.KeyRequest, 'h', 'i')), make([]byte, c.after)...))
		if f := p.WantFrame(mpa.KeyReply); f.Rev() != 1 || f.R() || f.M() != c.m || f.C() != c.c || f.PDLength() != 0 {
			t.Errorf("%+v: answered %v", c.cfg, f)
		}
		if b := p.WantFIN(); len(b) > 0 {
			t.Errorf("%+v: %q after the Reply", c.cfg, b)
		}
		p.Conn.Close()
		rig.Until(t, func() bool { return ln.Stats().HalfOpen == 0 }, "the end")
		if s := ln.Stats(); s.Failed[mpa.FailureRevision.String()] != 1 {
			t.Errorf("%+v: counted %+v", c.cfg, s)
		}
	}
	// One that does not close makes room for others.
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rig.NewRNIC(t, iwarp.RNICConfig{Kind: nonPermissive}), MaxHalfOpen: 1})
	p := rig.DialPeer(t, ln.Addr())
	p.Send(rig.Frame(revision0(mpa.KeyRequest)))
	p.WantFrame(mpa.KeyReply)
	other := rig.DialPeer(t, ln.Addr())
	other.Send(rig.Frame(rig.Request(2)))
	if _, err := ln.Accept(rig.Within(t)); err != nil {
		t.Error(err)
	}
	p.WantFIN()
}

// TestRevision0Lingers has such a peer go on sending, and never close: the connection is
// half-open for as long as it may, and then gone.
//
// Proves N04, Z04.
func TestRevision0Lingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		p := rig.NewPeer(t, a)
		ln := (&iwarp.ListenConfig{RNIC: rig.NewRNIC(t, iwarp.RNICConfig{Kind: nonPermissive})}).NewListener(
			&oneConn{conn: b, closed: make(chan struct{})})
		began := time.Now()
		p.Meanwhile(func() { p.Send(rig.Frame(revision0(mpa.KeyRequest))) })
		p.WantFrame(mpa.KeyReply)
		if b := p.WantFIN(); len(b) > 0 {
			t.Errorf("%q after the Reply", b)
		}
		for range 4 {
			p.Send(make([]byte, 100))
			if s := ln.Stats(); s.HalfOpen != 1 {
				t.Errorf("%d connections are half-open", s.HalfOpen)
			}
			time.Sleep(time.Second) // of virtual time
		}
		_, err := p.Conn.Write(make([]byte, 1))
		for err == nil {
			_, err = p.Conn.Write(make([]byte, 1))
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		if s := ln.Stats(); s.HalfOpen != 0 || s.Failed[mpa.FailureRevision.String()] != 1 {
			t.Errorf("counted %+v", s)
		}
		_ = ln.Close()
	})
}

// oneConn is a net.Listener for one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestRevision0Reply answers a non-permissive Dialer with revision 0, with bytes
// after it: it closes in order and does not try again.
//
// Proves N04, N03, Q07.
func TestRevision0Reply(t *testing.T) {
	for _, dialect := range []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581} {
		ln := rig.ListenTCP(t)
		d := iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Kind: nonPermissive})),
			MPA: mpa.Offer{Dialect: dialect}}
		dialed := (&rig.End{T: t}).Dials(d, ln)
		p := rig.AcceptPeer(t, ln)
		asked := p.WantFrame(mpa.KeyRequest).Rev()
		p.Send(append(rig.Frame(revision0(mpa.KeyReply)), make([]byte, 3000)...))
		if b := p.WantFIN(); len(b) > 0 {
			t.Errorf("%v: sent %q", dialect, b)
		}
		p.Conn.Close()
		err := <-dialed
		wantFailure(t, dialect.String(), err, mpa.FailureRevision)
		if !rig.Contains(err, fmt.Sprintf("Reply of revision 0 to our Request of revision %d", asked)) {
			t.Errorf("%v: %v", dialect, err)
		}
	}
}
