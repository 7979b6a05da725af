package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// refusals are the ways in which a peer that does not know RFC 6581 refuses a
// revision 2 Request.
var refusals = []struct {
	name   string
	refuse func(*peer)
	text   string
	open   bool // it leaves the TCP connection open
}{
	{"FIN", func(p *peer) { p.conn.Close() }, "closed the connection on a revision 2 Request", false},
	{"RST", func(p *peer) { _ = p.link.Reset() }, "closed the connection on a revision 2 Request", false},
	{"reject of revision 1", func(p *peer) {
		f := reply(1)
		f.R = true
		p.send(frame(f))
	}, "rejected a revision 2 Request with an unenhanced Reply", true},
	{"accept of revision 1", func(p *peer) { p.send(frame(reply(1))) }, "answered a revision 2 Request with an unenhanced Reply", true},
}

// TestFallback refuses revision 2 in every way that asks for revision 1, and then
// accepts that. We close the first connection if the peer has not, and log why there is
// another.
//
// Proves E13.
func TestFallback(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			ln := listenTCP(t)
			var log testrig.Buffer
			rnic := newRNIC(t, iwarp.RNICConfig{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: iwarp.LevelConnection}))})
			d := iwarp.Dialer{PD: newPD(t, rnic), QP: iwarp.QPConfig{Nudge: -1}}
			ini := &end{t: t}
			dialed := ini.dials(d, ln)
			first := acceptRequest(t, ln)
			c.refuse(first)
			p := acceptPeer(t, ln)
			if c.open {
				first.wantClosed()
			}
			if text := log.String(); !strings.Contains(text, "trying again with revision 1") || !strings.Contains(text, "cause=") {
				t.Errorf("logged %s", text)
			}
			if f := p.wantFrame(mpa.KeyRequest); f.Rev() != 1 || f.S() {
				t.Errorf("the second Request is %v", f)
			}
			p.send(frame(reply(1)))
			must(t, <-dialed)
			n := ini.Negotiated()
			if !n.FellBack || n.FallbackReason == nil || n.Revision != 1 || n.PeerToPeer || n.Opener != mpa.RTRWrite || n.IRD != iwarp.DefaultReadDepth {
				t.Errorf("negotiated %+v", n)
			}
			if s := p.want(rdmap.OpWrite); len(s.Payload) > 0 { // which lets the peer send
				t.Errorf("got %v with %d octets", s.Header, len(s.Payload))
			}
			if s := rnic.Stats().Startup; s.Fallbacks != 1 || s.Started != 2 || s.Established != 1 {
				t.Errorf("counted %+v", s)
			}
			ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")})
			if s := p.want(rdmap.OpSend); string(s.Payload) != "hello" {
				t.Errorf("got %q", s.Payload)
			}
		})
	}
}

// TestFallbackOpens has the connection of revision 1 keep what was asked for with revision 2: the peer may send
// first, after an RTR indication of a kind that was offered; or not, if the consumer wants no peer-to-peer
// connection. What cannot be kept is an error, and no second connection is opened for it.
//
// Proves E13.
func TestFallbackOpens(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer mpa.Offer
		want  rdmap.Opcode // of our first FPDU, without any work posted
		sends bool         // there is one
	}{
		{"default", mpa.Offer{}, rdmap.OpWrite, true},
		{"Read", mpa.Offer{RTR: mpa.RTRRead | mpa.RTRSend}, rdmap.OpReadRequest, true},
		{"client and server", mpa.Offer{ClientServer: true}, 0, false},
		{"Send", mpa.Offer{RTR: mpa.RTRSend}, 0, false},
	} {
		ln := listenTCP(t)
		d := iwarp.Dialer{MPA: c.offer, QP: iwarp.QPConfig{Nudge: -1}}
		ini := &end{t: t}
		dialed := ini.dials(d, ln)
		p := acceptRequest(t, ln)
		p.conn.Close()
		if c.name == "Send" {
			if err := <-dialed; !errors.Is(err, errors.ErrUnsupported) || !contains(err, "only a Send is offered") {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		p = acceptRequest(t, ln)
		p.send(frame(reply(1)))
		must(t, <-dialed)
		if n := ini.Negotiated(); (n.Opener != 0) != c.sends {
			t.Errorf("%s: negotiated %+v", c.name, n)
		}
		if c.sends {
			p.want(c.want)
		}
		ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")})
		p.want(rdmap.OpSend) // and nothing else before it
		_ = ini.Abort()
	}
}

// TestFallbackRefused refuses the second attempt too: the error tells of both.
//
// Proves E13.
func TestFallbackRefused(t *testing.T) {
	for _, c := range refusals {
		ln := listenTCP(t)
		dialed := (&end{t: t}).dials(iwarp.Dialer{}, ln)
		p := acceptRequest(t, ln)
		c.refuse(p)
		p = acceptRequest(t, ln)
		p.conn.Close()
		err := <-dialed
		want := fmt.Sprintf("iwarp: dial tcp %v: the responder %s; retried with revision 1: mpa: startup as Initiator: ", ln.Addr(), c.text)
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
		dialed := (&end{t: t}).dials(c.dialer, ln)
		p := acceptRequest(t, ln)
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

// TestTimeoutEnds: a Dial that is over leaves nothing behind that waits for its Timeout.
func TestTimeoutEnds(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{})
	var during context.Context
	d := iwarp.Dialer{Timeout: time.Hour, Net: net.Dialer{
		ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
			during = ctx
			return errors.New("enough")
		},
	}}
	if _, err := d.Dial(t.Context(), "tcp", ln.Addr().String()); !contains(err, "enough") {
		t.Error(err)
	}
	if !errors.Is(during.Err(), context.Canceled) {
		t.Errorf("the context: %v", during.Err())
	}
}
