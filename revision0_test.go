package iwarp_test

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// revision0 is what an RDMAC RNIC sends.
func revision0(key string, ulp ...byte) mpa.StartupFields {
	return mpa.StartupFields{Key: key, M: true, C: true, PrivateData: ulp}
}

// TestRevision0Refused sends a non-permissive Listener a Request of revision 0, with
// octets after it. It answers with a Reply of revision 1, and then closes in order:
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
		c.cfg.RNIC = newRNIC(t, iwarp.RNICConfig{Kind: nonPermissive, Markers: c.markers})
		ln := listen(t, c.cfg)
		p := dialPeer(t, ln.Addr())
		p.send(append(frame(revision0(mpa.KeyRequest, 'h', 'i')), make([]byte, c.after)...))
		if f := p.wantFrame(mpa.KeyReply); f.Rev() != 1 || f.R() || f.M() != c.m || f.C() != c.c || f.PDLength() != 0 {
			t.Errorf("%+v: answered %v", c.cfg, f)
		}
		if b := p.wantFIN(); len(b) > 0 {
			t.Errorf("%+v: %q after the Reply", c.cfg, b)
		}
		p.conn.Close()
		until(t, func() bool { return ln.Stats().HalfOpen == 0 }, "the end")
		if s := ln.Stats(); s.Failed[mpa.FailureRevision.String()] != 1 {
			t.Errorf("%+v: counted %+v", c.cfg, s)
		}
	}
	// One that does not close makes room for others.
	ln := listen(t, iwarp.ListenConfig{RNIC: newRNIC(t, iwarp.RNICConfig{Kind: nonPermissive}), MaxHalfOpen: 1})
	p := dialPeer(t, ln.Addr())
	p.send(frame(revision0(mpa.KeyRequest)))
	p.wantFrame(mpa.KeyReply)
	other := dialPeer(t, ln.Addr())
	other.send(frame(request(2)))
	if _, err := ln.Accept(within(t)); err != nil {
		t.Error(err)
	}
	p.wantFIN()
}

// TestRevision0Lingers has such a peer go on sending, and never close: the connection is
// half-open for as long as it may, and then gone.
//
// Proves N04, Z04.
func TestRevision0Lingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(t)
		p := newPeer(t, a)
		ln := iwarp.NewListener(&oneConn{conn: b, closed: make(chan struct{})}, iwarp.ListenConfig{RNIC: newRNIC(t, iwarp.RNICConfig{Kind: nonPermissive})})
		began := time.Now()
		p.meanwhile(func() { p.send(frame(revision0(mpa.KeyRequest))) })
		p.wantFrame(mpa.KeyReply)
		if b := p.wantFIN(); len(b) > 0 {
			t.Errorf("%q after the Reply", b)
		}
		for range 4 {
			p.send(make([]byte, 100))
			if s := ln.Stats(); s.HalfOpen != 1 {
				t.Errorf("%d connections are half-open", s.HalfOpen)
			}
			time.Sleep(time.Second) // of virtual time
		}
		_, err := p.conn.Write(make([]byte, 1))
		for err == nil {
			_, err = p.conn.Write(make([]byte, 1))
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

// TestRevision0Reply answers a non-permissive Dialer with revision 0, with octets
// after it: it closes in order and does not try again.
//
// Proves N04, N03, Q07.
func TestRevision0Reply(t *testing.T) {
	for _, dialect := range []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581} {
		ln := listenTCP(t)
		d := iwarp.Dialer{PD: newPD(t, newRNIC(t, iwarp.RNICConfig{Kind: nonPermissive})), MPA: mpa.Offer{Dialect: dialect}}
		dialed := (&end{t: t}).dials(d, ln)
		p := acceptPeer(t, ln)
		asked := p.wantFrame(mpa.KeyRequest).Rev()
		p.send(append(frame(revision0(mpa.KeyReply)), make([]byte, 3000)...))
		if b := p.wantFIN(); len(b) > 0 {
			t.Errorf("%v: sent %q", dialect, b)
		}
		p.conn.Close()
		err := <-dialed
		wantFailure(t, dialect.String(), err, mpa.FailureRevision)
		if !contains(err, fmt.Sprintf("Reply of revision 0 to our Request of revision %d", asked)) {
			t.Errorf("%v: %v", dialect, err)
		}
	}
}
