package iwarp_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// wantSaid expects an error that has words in it, and wraps another.
func wantSaid(t *testing.T, what string, err, wraps error, words ...string) {
	t.Helper()
	if !errors.Is(err, wraps) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v: says nothing of %q", what, err, w)
		}
	}
}

// TestNegativeLimits has Listen name a limit that is none, and Accept of a NewListener.
func TestNegativeLimits(t *testing.T) {
	for name, cfg := range map[string]iwarp.ListenConfig{
		"MaxHalfOpen is -1":          {MaxHalfOpen: -1},
		"MaxHalfOpenPerSource is -2": {MaxHalfOpenPerSource: -2},
		"MaxPerSource is -3":         {MaxPerSource: -3},
	} {
		_, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", cfg)
		wantSaid(t, "Listen", err, iwarp.ErrInvalid, name)

		on, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ln := iwarp.NewListener(on, cfg)
		_, err = ln.Accept(within(t))
		wantSaid(t, "Accept", err, iwarp.ErrInvalid, name)
		_ = ln.Close()
		if _, err := on.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("what it listened on is open: %v", err)
		}
	}
}

// TestGivenUpSaysWhat ends contexts while something is waited for: the error tells what.
func TestGivenUpSaysWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		gone, cancel := context.WithCancel(t.Context())
		dialed := dialInBackground(t, func() error {
			_, err := (&iwarp.Dialer{}).Initiate(gone, a, nil)
			return err
		})
		var request [20]byte
		_, err := b.Read(request[:])
		must(t, err)
		synctest.Wait()
		cancel()
		wantSaid(t, "Initiate", <-dialed, context.Canceled, "startup frame")

		e := newEnd(t, iwarp.RNICConfig{})
		e.QP, err = e.pd.CreateQP(iwarp.QPConfig{})
		must(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Recv(soon, iwarp.SGE{})
		wantSaid(t, "Recv without a connection", err, context.DeadlineExceeded, "no connection")
	})
	_, res := connect(t)
	soon, cancel := context.WithCancel(t.Context())
	call := dialInBackground(t, func() error { _, err := res.Recv(soon, iwarp.SGE{}); return err })
	until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	cancel()
	wantSaid(t, "Recv", <-call, context.Canceled, "no message has come")
}

// TestGivenUpNamesTheCall ends contexts of calls that wait for whatever comes next.
func TestGivenUpNamesTheCall(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", iwarp.ListenConfig{RNIC: rnic})
	must(t, err)
	defer ln.Close()
	cq, channel := newCQ(t, rnic, 1), newChannel(t, rnic)
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		said string
		call func() error
	}{
		{"accept " + ln.Addr().String(), func() error { _, err := ln.Accept(late); return err }},
		{"next event", func() error { _, err := rnic.NextEvent(late); return err }},
		{"wait for a completion", func() error { return cq.Wait(late) }},
		{"wait for a completion", func() error { _, err := cq.Next(late); return err }},
		{"wait for a completion", func() error { _, err := channel.Next(late); return err }},
	} {
		err := c.call()
		wantSaid(t, c.said, err, context.DeadlineExceeded, "iwarp: "+c.said)
		if op := (*iwarp.OpError)(nil); !errors.As(err, &op) || !op.Timeout() {
			t.Errorf("%s: %v is no OpError with a timeout", c.said, err)
		}
	}
}

// TestReceiverIsAdvised has Sends that cannot be received: the receiver is told what to do.
func TestReceiverIsAdvised(t *testing.T) {
	for words, posted := range map[string]int{"post one for each": -1, "as long as": 4} {
		ini, res := connect(t)
		if posted >= 0 {
			res.postRecv(1, res.mr(8, iwarp.LocalWrite).Slice(0, posted))
		}
		_ = ini.Send(within(t), ini.mr(8, 0).Slice(0, 8))
		<-res.Done()
		wantSaid(t, "the receiver", res.Err(), iwarp.ErrClosed, words)
	}
}

// TestPeerGaveUp explains the Terminate of a peer that has a reason of its own.
func TestPeerGaveUp(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	var h rdmap.Terminate
	h.Code = rdmap.CodeCatastrophicStream
	p.send(p.message(rdmap.OpTerminate, 1, h.Append(nil)))
	must(t, p.link.CloseWrite())
	<-res.Done()
	wantSaid(t, "the QP", res.Err(), iwarp.ErrClosed, "gave this connection up")
}

// TestDeregisterTwice says that the memory is gone already.
func TestDeregisterTwice(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	mr := e.mr(8, 0)
	must(t, mr.Deregister())
	wantSaid(t, "Deregister", mr.Deregister(), iwarp.ErrClosed, "the memory was deregistered")
}

// TestNil gives nothing where a QP, a connection or a listener is wanted.
func TestNil(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	qp, err := e.pd.CreateQP(iwarp.QPConfig{})
	must(t, err)
	var d iwarp.Dialer
	_, initiated := d.Initiate(t.Context(), nil, nil)
	_, responded := iwarp.Respond(t.Context(), nil, nil, iwarp.ListenConfig{})
	_, accepted := iwarp.NewListener(nil, iwarp.ListenConfig{}).Accept(t.Context())
	a, b := net.Pipe()
	defer b.Close()
	ln := listen(t, iwarp.ListenConfig{})
	_, req := ask(t, ln, frame(request(2)))
	for what, err := range map[string]error{
		"DialQP": d.DialQP(t.Context(), nil, "tcp", ln.Addr().String()), "Initiate": initiated, "Respond": responded, "NewListener": accepted,
		"InitiateQP without a connection": d.InitiateQP(t.Context(), qp, nil, nil), "InitiateQP without a QP": d.InitiateQP(t.Context(), nil, a, nil),
		"ModifyRTS": qp.ModifyRTS(nil, mpa.Negotiated{}, nil), "ModifyRTSOver": qp.ModifyRTSOver(nil, mpa.Negotiated{}, nil),
		"AcceptQP": req.AcceptQP(t.Context(), nil, iwarp.AcceptConfig{}),
	} {
		wantSaid(t, what, err, iwarp.ErrInvalid, "nil")
	}
	must(t, req.Close())
}

// TestAcceptAfterShutdown accepts a Request whose RNIC was closed: that fails, and the peer does not wait on.
func TestAcceptAfterShutdown(t *testing.T) {
	for _, c := range []struct {
		what, said string
		accept     func(qp *iwarp.QP, req *iwarp.Request) error
	}{
		{"Accept", "RNIC", func(_ *iwarp.QP, req *iwarp.Request) error {
			_, err := req.Accept(t.Context(), iwarp.AcceptConfig{})
			return err
		}},
		{"AcceptQP", "QP", func(qp *iwarp.QP, req *iwarp.Request) error {
			return req.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{})
		}},
	} {
		e := newEnd(t, iwarp.RNICConfig{})
		p, req := ask(t, listen(t, iwarp.ListenConfig{PD: e.pd}), frame(request(2)))
		qp := create(t, e.pd, iwarp.QPConfig{})
		must(t, e.rnic.Shutdown(t.Context()))
		wantSaid(t, c.what, c.accept(qp, req), iwarp.ErrClosed, c.said)
		p.wantClosed()
	}
}

// TestTerminateUnheard ends a connection in error before the Initiator's first FPDU. No Terminate may be sent then, and the
// connection is reset: a FIN would look like an orderly end.
func TestTerminateUnheard(t *testing.T) {
	p, req := ask(t, listen(t, iwarp.ListenConfig{}), frame(request(2)))
	res, err := req.Accept(within(t), iwarp.AcceptConfig{})
	must(t, err)
	p.wantFrame(mpa.KeyReply)
	must(t, res.Modify(iwarp.StateTerminate))
	if left, err := p.link.Rest(time.Time{}); p.link.End() != script.RST || len(left) > 0 {
		t.Errorf("the peer got %q, and %v (%v)", left, p.link.End(), err)
	}
	wantSaid(t, "Close", res.Close(), iwarp.ErrClosed, "the consumer asked for it")
}

// TestAgreedIsNotOdd counts neither the RTR indication nor nudges as something odd.
func TestAgreedIsNotOdd(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	for range 6 { // beside the indication
		p.send(p.write(0, 0, nil))
	}
	res.postRecv(1)
	must(t, p.link.CloseWrite())
	res.wantReceived(1, iwarp.StatusFlushed)
	if odd := res.Stats().Odd; odd != (iwarp.Oddities{}) {
		t.Errorf("%+v", odd)
	}
}
