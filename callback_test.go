package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// mustPanic calls f, and recovers from its panic as a server does that serves others.
func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("did not panic")
		}
	}()
	f()
}

// panicking are Dialers whose consumer's code panics.
var panicking = map[string]iwarp.Dialer{
	"Prepare": {Prepare: func(*iwarp.QP) error { panic("Prepare") }},
	"Verify":  {Verify: func(mpa.Negotiated) error { panic("Verify") }},
	"Wrap":    {Wrap: func(net.Conn) (net.Conn, error) { panic("Wrap") }},
}

// TestDialerPanics has the consumer's code panic in each of the places where a Dialer calls it. The panic
// goes on to the caller, and nothing is left: the Protection Domain is free, the connection closed.
func TestDialerPanics(t *testing.T) {
	for name, d := range panicking {
		t.Run(name, func(t *testing.T) {
			ln := listenTCP(t)
			d.PD = newPD(t, newRNIC(t, iwarp.RNICConfig{}))
			ended := dialInBackground(t, func() error { return serveUntilEnd(ln) })
			mustPanic(t, func() { _, _ = d.Dial(within(t), "tcp", ln.Addr().String()) })
			should(t, d.PD.Close())
			if name == "Prepare" { // before there is a connection
				ln.Close()
				<-ended
				return
			}
			if err := <-ended; err != nil {
				t.Errorf("the peer's connection: %v", err)
			}
		})
	}
}

// serveUntilEnd accepts one TCP connection, replies to a Request if there is one, and waits for the end.
func serveUntilEnd(ln net.Listener) error {
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(frame(request(2))))); err != nil {
		return nil // closed before it
	}
	if _, err := c.Write(frame(reply(2))); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// TestAcceptPanics: the Request can still be answered after a panic of Prepare.
func TestAcceptPanics(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{PD: newPD(t, newRNIC(t, iwarp.RNICConfig{}))})
	p := dialPeer(t, ln.Addr())
	p.send(frame(request(2)))
	req, err := ln.Accept(within(t))
	must(t, err)
	mustPanic(t, func() {
		_, _ = req.Accept(within(t), iwarp.AcceptConfig{Prepare: func(*iwarp.QP) error { panic("Prepare") }})
	})
	if n := len(ln.RNIC().QPs()); n != 0 {
		t.Errorf("%d QPs are left", n)
	}
	qp, err := req.Accept(within(t), iwarp.AcceptConfig{})
	must(t, err)
	p.wantFrame(mpa.KeyReply)
	_ = qp.Abort()
}

// TestWrapReturnsNothing: that is the consumer's mistake, and is told so.
func TestWrapReturnsNothing(t *testing.T) {
	ln := listenTCP(t)
	d := iwarp.Dialer{Wrap: func(net.Conn) (net.Conn, error) { return nil, nil }}
	_, err := d.Dial(context.Background(), "tcp", ln.Addr().String())
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("dial: %v", err)
	}
}
