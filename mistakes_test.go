package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestNegativeLimits has Listen name a limit that is none, and Accept of a NewListener.
func TestNegativeLimits(t *testing.T) {
	for name, cfg := range map[string]iwarp.ListenConfig{
		"MaxHalfOpen is -1":          {MaxHalfOpen: -1},
		"MaxHalfOpenPerSource is -2": {MaxHalfOpenPerSource: -2},
		"MaxPerSource is -3":         {MaxPerSource: -3},
	} {
		_, err := cfg.Listen(t.Context(), "tcp", "127.0.0.1:0")
		rig.WantSaid(t, "Listen", err, iwarp.ErrInvalid, name)

		on, err := net.Listen("tcp", "127.0.0.1:0")
		rig.Must(t, err)
		ln := cfg.NewListener(on)
		_, err = ln.Accept(rig.Within(t))
		rig.WantSaid(t, "Accept", err, iwarp.ErrInvalid, name)
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
		dialed := rig.DialInBackground(t, func() error {
			_, err := (&iwarp.Dialer{}).Initiate(gone, a, nil)
			return err
		})
		var request [20]byte
		_, err := b.Read(request[:])
		rig.Must(t, err)
		synctest.Wait()
		cancel()
		rig.WantSaid(t, "Initiate", <-dialed, context.Canceled, "startup frame")

		e := rig.NewEnd(t, iwarp.RNICConfig{})
		e.QP, err = e.PD.CreateQP(iwarp.QPConfig{})
		rig.Must(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Recv(soon, iwarp.SGE{})
		rig.WantSaid(t, "Recv without a connection", err, context.DeadlineExceeded, "no connection")
	})
	_, res := connectPatient(t)
	soon, cancel := context.WithCancel(t.Context())
	call := rig.DialInBackground(t, func() error { _, err := res.Recv(soon, iwarp.SGE{}); return err })
	rig.Until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	cancel()
	rig.WantSaid(t, "Recv", <-call, context.Canceled, "no message has come")
}

// TestGivenUpNamesTheCall ends contexts of calls that wait for whatever comes next.
func TestGivenUpNamesTheCall(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	cq := rig.NewCQ(t, rnic, 1)
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
	} {
		err := c.call()
		rig.WantSaid(t, c.said, err, context.DeadlineExceeded, "iwarp: "+c.said)
		if op := (*iwarp.OpError)(nil); !errors.As(err, &op) || !op.Timeout() {
			t.Errorf("%s: %v is no OpError with a timeout", c.said, err)
		}
	}
}

// TestReceiverIsAdvised has Sends that cannot be received: the receiver is told what to do.
func TestReceiverIsAdvised(t *testing.T) {
	for words, posted := range map[string]int{"post one for each": -1, "as long as": 4} {
		ini, res := rig.Connect(t)
		if posted >= 0 {
			res.MustPostRecv(1, res.MR(8, iwarp.LocalWrite).Slice(0, posted))
		}
		_ = ini.Send(rig.Within(t), ini.MR(8, 0).Slice(0, 8))
		<-res.Done()
		rig.WantSaid(t, "the receiver", res.Err(), iwarp.ErrClosed, words)
	}
}

// TestPeerGaveUp explains the Terminate of a peer that has a reason of its own.
func TestPeerGaveUp(t *testing.T) {
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
	var h rdmap.Terminate
	h.Code = rdmap.CodeCatastrophicStream
	p.Send(p.Message(rdmap.OpTerminate, 1, h.Append(nil)))
	rig.Must(t, p.Link.CloseWrite())
	<-res.Done()
	rig.WantSaid(t, "the QP", res.Err(), iwarp.ErrClosed, "gave this connection up")
}

// TestDeregisterTwice says that the memory is gone already.
func TestDeregisterTwice(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr := e.MR(8, 0)
	rig.Must(t, mr.Deregister())
	rig.WantSaid(t, "Deregister", mr.Deregister(), iwarp.ErrClosed, "the memory was deregistered")
}

// TestNil gives nothing where a QP, a connection or a listener is wanted.
func TestNil(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	qp, err := e.PD.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	var d iwarp.Dialer
	_, initiated := d.Initiate(t.Context(), nil, nil)
	_, responded := new(iwarp.ListenConfig).Respond(t.Context(), nil, nil)
	_, accepted := new(iwarp.ListenConfig).NewListener(nil).Accept(t.Context())
	a, b := net.Pipe()
	defer b.Close()
	ln := rig.Listen(t, iwarp.ListenConfig{})
	_, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
	for what, err := range map[string]error{
		"DialQP": d.DialQP(t.Context(), nil, "tcp", ln.Addr().String()), "Initiate": initiated,
		"Respond": responded, "NewListener": accepted,
		"InitiateQP without a connection": d.InitiateQP(t.Context(), qp, nil, nil),
		"InitiateQP without a QP":         d.InitiateQP(t.Context(), nil, a, nil),
		"ModifyRTS":                       qp.ModifyRTS(nil, mpa.Negotiated{}, nil),
		"ModifyRTSOver":                   qp.ModifyRTSOver(nil, mpa.Negotiated{}, nil),
		"AcceptQP":                        req.AcceptQP(t.Context(), nil, iwarp.AcceptConfig{}),
	} {
		rig.WantSaid(t, what, err, iwarp.ErrInvalid, "nil")
	}
	rig.Must(t, req.Close())
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
		e := rig.NewEnd(t, iwarp.RNICConfig{})
		p, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{PD: e.PD}), rig.Frame(rig.Request(2)))
		qp := rig.NewQP(t, e.PD, iwarp.QPConfig{})
		rig.Must(t, e.RNIC.Shutdown(t.Context()))
		rig.WantSaid(t, c.what, c.accept(qp, req), iwarp.ErrClosed, c.said)
		p.WantClosed()
	}
}

// TestTerminateUnheard ends a connection in error before the Initiator's first FPDU. No Terminate may be sent then, and
// the connection is reset: a FIN would look like an orderly end.
func TestTerminateUnheard(t *testing.T) {
	p, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{}), rig.Frame(rig.Request(2)))
	res, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	p.WantFrame(mpa.KeyReply)
	rig.Must(t, res.Modify(iwarp.StateTerminate))
	if left, err := p.Link.Rest(time.Time{}); p.Link.End() != script.RST || len(left) > 0 {
		t.Errorf("the peer got %q, and %v (%v)", left, p.Link.End(), err)
	}
	rig.WantSaid(t, "Close", res.Close(), iwarp.ErrClosed, "the consumer asked for it")
}

// TestAgreedIsNotOdd counts neither the RTR indication nor nudges as something odd.
func TestAgreedIsNotOdd(t *testing.T) {
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
	for range 6 { // beside the indication
		p.Send(p.Write(0, 0, nil))
	}
	res.MustPostRecv(1)
	rig.Must(t, p.Link.CloseWrite())
	res.WantReceived(1, iwarp.StatusFlushed)
	if odd := res.Stats().Odd; odd != (iwarp.Stats{}).Odd {
		t.Errorf("%+v", odd)
	}
}

// TestModifySays asks for transitions that do not exist: the error says what to do instead.
func TestModifySays(t *testing.T) {
	ini, _ := rig.Connect(t)
	idle := rig.NewQP(t, ini.PD, iwarp.QPConfig{})
	for _, c := range []struct {
		qp    *iwarp.QP
		to    iwarp.State
		is    error
		words string
	}{
		{ini.QP, iwarp.StateIdle, iwarp.ErrBadState, "end the connection first"},
		{ini.QP, iwarp.StateRTS, iwarp.ErrBadState, "ModifyRTS"},
		{ini.QP, iwarp.StateClosed, iwarp.ErrInvalid, "Modify to Closing"},
		{ini.QP, iwarp.StateClosed + 1, iwarp.ErrInvalid, "there is no state 6"},
		{idle, 99, iwarp.ErrInvalid, "there is no state 99"},
		{idle, iwarp.StateClosing, iwarp.ErrBadState, "no connection to end"},
		{idle, iwarp.StateTerminate, iwarp.ErrBadState, "no connection to end"},
	} {
		rig.WantSaid(t, c.to.String(), c.qp.Modify(c.to), c.is, c.words)
	}
	rig.WantSaid(t, "CloseWrite", idle.CloseWrite(), iwarp.ErrBadState, "in Idle", "no connection")
}

// TestDeregisteredReceiveSays: who takes the memory of a receive away too early is told to keep it.
func TestDeregisteredReceiveSays(t *testing.T) {
	ini, res := rig.Connect(t)
	mr := res.MR(8, iwarp.LocalWrite)
	res.MustPostRecv(1, mr.Slice(0, 8))
	rig.Must(t, mr.Deregister())
	rig.PostSmall(ini, 1)
	rig.Wait(t, res.Done(), "the end")
	rig.WantSaid(t, "the Send", res.Err(), iwarp.ErrClosed, "memory of the receive",
		"keep it registered until the receive is complete")
}

// TestMistakesSay makes mistakes: the error says which, what to do about it, and that it is this package's.
func TestMistakesSay(t *testing.T) {
	a, b := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	srq, err := a.PD.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	small, err := a.PD.CreateSRQ(iwarp.SRQConfig{Depth: 16, PerQP: 8, Limit: 12})
	rig.Must(t, err)
	shared := rig.NewQP(t, a.PD, iwarp.QPConfig{SRQ: srq})
	gone := a.MR(8, iwarp.LocalWrite)
	rig.Must(t, gone.Deregister())
	cq := rig.NewCQ(t, b.RNIC, 1)
	rig.Must(t, cq.Close())
	ended := rig.NewQP(t, a.PD, iwarp.QPConfig{})
	rig.Must(t, ended.Close())
	last := iwarp.NewRNIC(iwarp.RNICConfig{})
	rig.Must(t, last.Close())
	for what, c := range map[string]struct {
		do    func() error
		is    error
		words []string
	}{
		"SRQ": {func() error { _, err := b.PD.CreateQP(iwarp.QPConfig{SRQ: srq}); return err }, iwarp.ErrInvalid,
			[]string{"SRQ of another RNIC", "with one PD"}},
		"SRQ, PD": {func() error { _, err := rig.NewPD(t, a.RNIC).CreateQP(iwarp.QPConfig{SRQ: srq}); return err },
			iwarp.ErrInvalid, []string{"SRQ of another Protection Domain", "with one PD"}},
		"CQ": {func() error {
			_, err := a.PD.CreateQP(iwarp.QPConfig{SendCQ: rig.NewCQ(t, b.RNIC,
				1)})
			return err
		}, iwarp.ErrInvalid, []string{"CQ of another RNIC", "PD.RNIC"}},
		"Read": {func() error { return shared.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Inline: []byte("x")}) },
			iwarp.ErrInvalid, []string{"a Read has inline data", "registered memory"}},
		"both": {func() error {
			return shared.PostSend(&iwarp.SendWR{Inline: []byte("x"),
				SGL: make([]iwarp.SGE, 1)})
		}, iwarp.ErrInvalid, []string{"one or the other"}},
		"SRQ, share": {func() error { return small.Resize(4) }, iwarp.ErrInvalid,
			[]string{"depth 4", "PerQP, which is 8"}},
		"SRQ, limit": {func() error { return small.Resize(9) }, iwarp.ErrInvalid,
			[]string{"depth 9", "armed, 12", "Arm a lower one"}},
		"base": {func() error {
			_, err := a.PD.RegisterOptions(make([]byte, 4), iwarp.MROptions{Base: math.MaxUint64 - 1})
			return err
		}, iwarp.ErrInvalid, []string{"MROptions.Base 0xfffffffffffffffe with 4 bytes", "64 bits"}},
		"deregistered": {func() error { return srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{gone.Slice(0, 8)}}) },
			iwarp.ErrInvalid, []string{"register the memory again"}},
		"unix": {func() error { _, err := iwarp.Dial(rig.Within(t), "unix", "x"); return err },
			iwarp.ErrInvalid, []string{"Dialer.Initiate", "NewListener"}},
		"PostRecv": {func() error { return shared.PostRecv(&iwarp.RecvWR{}) }, iwarp.ErrInvalid,
			[]string{"Shared Receive Queue", "post to that"}},
		"Recv": {func() error { _, err := shared.Recv(rig.Within(t), iwarp.SGE{}); return err },
			iwarp.ErrInvalid, []string{"post to that"}},
		"Next of a CQ": {func() error { _, err := cq.Next(rig.Within(t)); return err }, iwarp.ErrClosed,
			[]string{"the CQ was closed"}},
		"Next of a dead QP": {func() error { _, err := ended.SendCQ().Next(rig.Within(t)); return err },
			iwarp.ErrNoQP, []string{"every QP"}},
		"NextEvent": {func() error { _, err := last.NextEvent(rig.Within(t)); return err }, iwarp.ErrClosed,
			[]string{"the RNIC was closed"}},
	} {
		err := c.do()
		rig.WantSaid(t, what, err, c.is, c.words...)
		if !strings.HasPrefix(fmt.Sprint(err), "iwarp: ") || rig.Contains(err, iwarp.ErrBadState.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSaidOnce has errors whose parts could tell the same again, or of another call.
func TestSaidOnce(t *testing.T) {
	idle := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	connected, _ := rig.Setup{}.Connect(t)
	for _, qp := range []*iwarp.QP{idle, connected.QP} {
		rig.Must(t, qp.Close())
		_, read := qp.Read(rig.Within(t), iwarp.SGE{}, iwarp.Remote{})
		_, write := qp.Write(rig.Within(t), iwarp.SGE{}, iwarp.Remote{})
		send, posted := qp.Send(rig.Within(t), iwarp.SGE{}), qp.PostSend(&iwarp.SendWR{})
		_, received := qp.Recv(rig.Within(t), iwarp.SGE{})
		for call, err := range map[string]error{"read": read, "write": write, "send": send,
			"post send": posted, "receive": received} {
			if err == nil || !strings.HasPrefix(err.Error(), "iwarp: "+call+": ") ||
				strings.Count(err.Error(), "the QP was closed") != 1 {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	if s := (iwarp.WC{}).String(); s != "no completion" {
		t.Errorf("a zero WC is %q", s)
	}
}
