package iwarp_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// refusals are the ways in which a peer that does not know RFC 6581 refuses a
// revision 2 Request.
var refusals = []struct {
	name   string
	refuse func(*peer)
	text   string
}{
	{"FIN", func(p *peer) { p.conn.Close() }, "closed the connection on a revision 2 request"},
	{"RST", func(p *peer) { _ = p.conn.(*net.TCPConn).SetLinger(0); p.conn.Close() }, "closed the connection on a revision 2 request"},
	{"reject of revision 1", func(p *peer) {
		f := reply(1)
		f.R = true
		p.send(frame(f))
	}, "rejected a revision 2 request with an unenhanced reply"},
	{"accept of revision 1", func(p *peer) { p.send(frame(reply(1))) }, "answered a revision 2 request with an unenhanced reply"},
}

// TestFallback refuses revision 2 in every way that asks for revision 1, and then
// accepts that.
//
// Proves E13.
func TestFallback(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			ln := listenTCP(t)
			rnic := newRNIC(t, iwarp.RNICConfig{})
			d := iwarp.Dialer{PD: newPD(t, rnic)}
			var qp *iwarp.QP
			dialed := dialInBackground(t, func() (err error) {
				qp, err = d.Dial(within(t), "tcp", ln.Addr().String())
				return err
			})
			p := acceptPeer(t, ln)
			p.wantFrame(mpa.KeyRequest)
			c.refuse(p)
			p = acceptPeer(t, ln)
			if f := p.wantFrame(mpa.KeyRequest); f.Rev() != 1 || f.S() {
				t.Errorf("the second Request is %v", f)
			}
			p.send(frame(reply(1)))
			if err := <-dialed; err != nil {
				t.Fatal(err)
			}
			n := qp.Negotiated()
			if !n.FellBack || n.FallbackReason == nil || n.Revision != 1 || n.PeerToPeer {
				t.Errorf("negotiated %+v", n)
			}
			if s := rnic.Stats().Startup; s.Fallbacks != 1 || s.Started != 2 || s.Established != 1 {
				t.Errorf("counted %+v", s)
			}
			if err := qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
			if s := p.want(rdmap.OpSend); string(s.Payload) != "hello" {
				t.Errorf("got %q", s.Payload)
			}
		})
	}
}

// TestFallbackRefused refuses the second attempt too: the error tells of both.
//
// Proves E13.
func TestFallbackRefused(t *testing.T) {
	for _, c := range refusals {
		ln := listenTCP(t)
		addr := ln.Addr().String()
		dialed := dialInBackground(t, func() error {
			_, err := new(iwarp.Dialer).Dial(within(t), "tcp", addr)
			return err
		})
		p := acceptPeer(t, ln)
		p.wantFrame(mpa.KeyRequest)
		c.refuse(p)
		p = acceptPeer(t, ln)
		p.wantFrame(mpa.KeyRequest)
		p.conn.Close()
		err := <-dialed
		want := fmt.Sprintf("iwarp: responder at %s %s; retried with revision 1: mpa: startup as Initiator: ", addr, c.text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s...", c.name, err, want)
		}
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != mpa.FailureClosed || s.Fallback {
			t.Errorf("%s: the last failure is %+v", c.name, s)
		}
	}
}

// TestNoFallback makes one attempt only where the consumer wants it so, or where
// the failure has nothing to do with the revision.
//
// Proves E13.
func TestNoFallback(t *testing.T) {
	for _, c := range []struct {
		name   string
		dialer iwarp.Dialer
		refuse func(*peer)
		want   mpa.Failure
	}{
		{"switched off", iwarp.Dialer{NoFallback: true}, func(p *peer) { p.conn.Close() }, mpa.FailureClosed},
		{"revision 1 already", iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}}, func(p *peer) { p.conn.Close() }, mpa.FailureClosed},
		{"cut off in its Reply", iwarp.Dialer{}, func(p *peer) { p.send([]byte(mpa.KeyReply)); p.conn.Close() }, mpa.FailureClosed},
		{"no MPA", iwarp.Dialer{}, func(p *peer) { p.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, mpa.FailureKey},
	} {
		ln := listenTCP(t)
		dialed := dialInBackground(t, func() error {
			_, err := c.dialer.Dial(within(t), "tcp", ln.Addr().String())
			return err
		})
		p := acceptPeer(t, ln)
		p.wantFrame(mpa.KeyRequest)
		c.refuse(p)
		err := <-dialed
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != c.want || strings.Contains(err.Error(), "retried") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNobodyThere has TCP itself fail; the error names the address once.
func TestNobodyThere(t *testing.T) {
	ln := listenTCP(t)
	addr := ln.Addr().String()
	ln.Close()
	_, err := new(iwarp.Dialer).Dial(within(t), "tcp", addr)
	var op *iwarp.OpError
	if !errors.As(err, &op) || op.Op != "dial" || strings.Count(err.Error(), addr) != 1 {
		t.Errorf("got %v", err)
	}
}
