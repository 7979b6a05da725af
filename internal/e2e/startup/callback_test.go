package startup

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

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
			ln := rig.ListenTCP(t)
			d.PD = rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
			ended := rig.DialInBackground(t, func() error { return serveUntilEnd(ln) })
			rig.MustPanic(t, func() { _, _ = d.Dial(rig.Within(t), "tcp", ln.Addr().String()) })
			rig.Should(t, d.PD.Close())
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
	if _, err := io.ReadFull(c, make([]byte, len(rig.Frame(rig.Request(2))))); err != nil {
		return nil // closed before it
	}
	if _, err := c.Write(rig.Frame(rig.Reply(2))); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// TestAcceptPanics: the Request can still be answered after a panic of Prepare.
func TestAcceptPanics(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))})
	p := rig.DialPeer(t, ln.Addr())
	p.Send(rig.Frame(rig.Request(2)))
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	rig.MustPanic(t, func() {
		_, _ = req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: func(*iwarp.QP) error { panic("Prepare") }})
	})
	if n := len(ln.RNIC().QPs()); n != 0 {
		t.Errorf("%d QPs are left", n)
	}
	qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	p.WantFrame(mpa.KeyReply)
	_ = qp.Abort()
}

// TestWrapReturnsNothing: that is the consumer's mistake, and is told so.
func TestWrapReturnsNothing(t *testing.T) {
	ln := rig.ListenTCP(t)
	d := iwarp.Dialer{Wrap: func(net.Conn) (net.Conn, error) { return nil, nil }}
	_, err := d.Dial(context.Background(), "tcp", ln.Addr().String())
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("dial: %v", err)
	}
}

// TestWaitInPrepare: the connection comes up after Prepare. A call in it that waits ends after a second, and says so.
func TestWaitInPrepare(t *testing.T) {
	for name, call := range map[string]func(qp *iwarp.QP, s iwarp.SGE) error{
		"Send": func(qp *iwarp.QP, s iwarp.SGE) error { return qp.Send(context.Background(), s) },
		"Write": func(qp *iwarp.QP, s iwarp.SGE) error {
			_, err := qp.Write(context.Background(), s, iwarp.Remote{})
			return err
		},
		"Recv": func(qp *iwarp.QP, s iwarp.SGE) error { _, err := qp.Recv(context.Background(), s); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				d := iwarp.Dialer{Prepare: func(qp *iwarp.QP) error {
					mr, err := qp.PD().Register(make([]byte, 8), iwarp.LocalWrite)
					rig.Must(t, err)
					return call(qp, mr.Slice(0, 8))
				}}
				conn, _ := testrig.Pipe("initiator", "nobody")
				_, err := d.Initiate(context.Background(), conn, nil)
				if !errors.Is(err, iwarp.ErrBadState) || !rig.Contains(err, "use PostSend and PostRecv in Prepare") {
					t.Errorf("the error is %v", err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("it came after %v", took)
				}
			})
		})
	}
}

// TestWaitBesidePrepare: a goroutine that Prepare starts may call Recv at once, and waits for the connection.
func TestWaitBesidePrepare(t *testing.T) {
	received := make(chan error, 1)
	var s rig.Setup
	s.Prepare = func(qp *iwarp.QP) error {
		mr, err := qp.PD().Register(make([]byte, 8), iwarp.LocalWrite)
		rig.Must(t, err)
		go func() { _, err := qp.Recv(rig.Within(t), mr.Slice(0, 8)); received <- err }()
		rig.Until(t, func() bool { return qp.Query().Receives == 1 }, "the receive")
		return nil
	}
	ini, res := s.Connect(t)
	rig.Should(t, res.Send(rig.Within(t), res.MR(8, 0).Slice(0, 8)))
	rig.Should(t, <-received)
	rig.Finish(t, ini, res)
}
