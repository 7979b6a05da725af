package endings

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestUseAfterClose uses each kind of object after it was closed: the error says what was
// closed, in words that are not those of a socket, and is ErrClosed.
func TestUseAfterClose(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	pd, other := rig.NewPD(t, rnic), rig.NewPD(t, rnic)
	cq, err := rnic.CreateCQ(8)
	rig.Must(t, err)
	srq, err := other.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	mr, err := pd.Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	ln, err := (&iwarp.ListenConfig{PD: other}).Listen(rig.Within(t), "tcp", "127.0.0.1:0")
	rig.Must(t, err)
	rig.Must(t, ln.Close())
	rig.Must(t, ln.Shutdown(rig.Within(t)))
	rig.Must(t, mr.Deregister())
	rig.Must(t, cq.Close())
	rig.Must(t, srq.Close())
	rig.Must(t, pd.Close())
	for _, c := range []struct {
		call func() error
		want string
	}{
		{ln.Close, "the Listener was closed"},
		{func() error { _, err := ln.Accept(rig.Within(t)); return err }, "the Listener was closed"},
		{func() error { _, err := mr.ReadAt(make([]byte, 1), 0); return err }, "the memory was deregistered"},
		{func() error { return mr.Update(func([]byte) {}) }, "the memory was deregistered"},
		{func() error { _, err := cq.Next(rig.Within(t)); return err }, "the CQ was closed"},
		{func() error { return cq.Resize(3) }, "the CQ was closed"},
		{func() error { _, err := other.CreateQP(iwarp.QPConfig{SendCQ: cq}); return err }, "the CQ was closed"},
		{func() error { return srq.PostRecv(&iwarp.RecvWR{}) }, "the SRQ was closed"},
		{func() error { _, err := pd.CreateQP(iwarp.QPConfig{}); return err }, "the Protection Domain was closed"},
		{func() error { rig.Must(t, rnic.Close()); _, err := rnic.AllocPD(); return err }, "the RNIC was closed"},
		{func() error { _, err := rnic.NextEvent(rig.Within(t)); return err }, "the RNIC was closed"},
	} {
		err := c.call()
		if !errors.Is(err, iwarp.ErrClosed) || !rig.Contains(err, c.want) || rig.Contains(err, "network connection") {
			t.Errorf("%v; want one that says %q", err, c.want)
		}
	}
}

// TestCloseInUse closes what is in use: the error speaks of the object and its users.
func TestCloseInUse(t *testing.T) {
	pd := rig.NewPD(t, iwarp.NewRNIC(iwarp.RNICConfig{}))
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	qp := rig.NewQP(t, pd, iwarp.QPConfig{SRQ: srq})
	for _, err := range []error{srq.Close(), qp.SendCQ().Close(), pd.Close()} {
		if !errors.Is(err, iwarp.ErrBadState) || rig.Contains(err, "state of the QP") || !rig.Contains(err, "use") {
			t.Error(err)
		}
	}
	if err := qp.PostRecv(&iwarp.RecvWR{}); !rig.Contains(err, "Shared Receive Queue, post to that") {
		t.Error(err)
	}
}

// TestNumbersRefused refuses numbers that make no sense, and says which are good.
func TestNumbersRefused(t *testing.T) {
	pd := rig.NewPD(t, iwarp.NewRNIC(iwarp.RNICConfig{}))
	for want, cfg := range map[string]iwarp.QPConfig{
		"SendDepth -3": {SendDepth: -3},
		"1 to 65536":   {RecvDepth: iwarp.MaxQueueDepth + 1},
		"4096 at most": {MaxInline: iwarp.MaxInline + 1},
		"IdleTimeout is -1ns, and is to be positive":       {IdleTimeout: -1},
		"UserTimeout is -1ns, and is to be positive":       {UserTimeout: -1},
		"CloseTimeout is -1ns, and is to be positive":      {CloseTimeout: -1},
		"FPDUs is 9, and is to be one of FPDUsDefault (0)": {FPDUs: 9},
	} {
		if _, err := pd.CreateQP(cfg); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, want) {
			t.Errorf("%v; want one that says %q", err, want)
		}
	}
	err := rig.NewQP(t, pd, iwarp.QPConfig{}).PostSend(&iwarp.SendWR{Inline: make([]byte, 257)})
	if !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "257 bytes") || !rig.Contains(err, "256 at most") {
		t.Error(err)
	}
}

// TestClosedInWords: a QP prints the state that State returns.
func TestClosedInWords(t *testing.T) {
	t.Parallel()
	ini, res := rig.Setup{}.Connect(t)
	_ = ini.Close()
	_ = res.Close()
	for _, e := range []*rig.End{ini, res} {
		if s := fmt.Sprint(e.QP); e.State() != iwarp.StateClosed || !strings.Contains(s, "(Closed") {
			t.Errorf("%v: %s", e.State(), s)
		}
	}
}

// TestCQOfComingAndGoing: a QP that is never connected keeps a CQ waiting while the QPs
// of clients come and go.
func TestCQOfComingAndGoing(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	cq, err := rnic.CreateCQ(1024)
	rig.Must(t, err)
	keeper, client := rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq}), rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq})
	rig.Must(t, client.Close())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cq.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with a QP to come: %v", err)
	}
	rig.Must(t, keeper.Close())
	err = cq.Wait(over)
	if !errors.Is(err, iwarp.ErrNoQP) || keeper.Cause(err) != err {
		t.Errorf("without one: %v, by %v", err, keeper.Cause(err))
	}
}

// TestReasonsOfWaiting: who waits for what cannot come is told of it.
func TestReasonsOfWaiting(t *testing.T) {
	pd := rig.NewPD(t, iwarp.NewRNIC(iwarp.RNICConfig{}))
	qp := rig.NewQP(t, pd, iwarp.QPConfig{SendDepth: 2})
	mr, err := pd.Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := rig.DialInBackground(t, func() error { return qp.Send(ctx, mr.Slice(0, 8)) })
	rig.Until(t, func() bool { return qp.Query().Sends == 1 }, "the request")
	cancel()
	err = <-sent
	if pending := (*iwarp.PendingError)(nil); !errors.As(err, &pending) || !errors.Is(err, context.Canceled) ||
		!rig.Contains(err, "waits for a connection") {
		t.Errorf("a Send without a connection: %v", err)
	}
	rig.Must(t, qp.PostSend(&iwarp.SendWR{}))
	if err := qp.PostSend(&iwarp.SendWR{}); !errors.Is(err, iwarp.ErrQueueFull) ||
		!rig.Contains(err, "poll its completions") {
		t.Errorf("a third request in a queue of two: %v", err)
	}
	_ = qp.Close()
}

// TestAcceptAfterPrepare: a Request whose Prepare has failed waits for another answer.
func TestAcceptAfterPrepare(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	dialed := rig.DialInBackground(t, func() error {
		qp, err := iwarp.Dial(rig.Within(t), "tcp", ln.Addr().String())
		if err == nil {
			_ = qp.Abort()
		}
		return err
	})
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	failed := errors.New("no memory for receives")
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: func(
		*iwarp.QP) error {
		return failed
	}}); !errors.Is(err, failed) {
		t.Errorf("accepted: %v", err)
	}
	qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	rig.Must(t, <-dialed)
	_ = qp.Abort()
}

// TestNoErrYet: Err is nil as long as the connection goes on, although a half of it has ended, and while it is closed.
func TestNoErrYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := iwarp.QPConfig{HalfClose: true}
		ini, res := rig.Setup{Pipe: true, Dialer: iwarp.Dialer{QP: open},
			Accept: iwarp.AcceptConfig{QP: open}}.Connect(t)
		wantNone := func(e *rig.End, s iwarp.State) {
			t.Helper()
			synctest.Wait()
			if err := e.Err(); err != nil || e.State() != s {
				t.Errorf("in state %v: %v", e.State(), err)
			}
		}
		rig.Must(t, ini.CloseWrite())
		wantNone(ini, iwarp.StateRTS)
		wantNone(res, iwarp.StateRTS)
		ini, res = rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: open}}.Connect(t)
		rig.Must(t, ini.Modify(iwarp.StateClosing))
		wantNone(ini, iwarp.StateClosing)
		_ = res.Abort()
	})
}

// A writeless connection can be read, and no longer be written to.
type writeless struct {
	net.Conn
	broken atomic.Bool
}

var errWriteless = errors.New("cannot be written to")

func (c *writeless) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func (c *writeless) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, errWriteless
	}
	return c.Conn.Write(b)
}

// TestWriteFails: a connection that fails as it is written to is lost, whatever could still be read.
//
// Proves S05.
func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		accepted := rig.DialInBackground(t, func() error {
			req, err := new(iwarp.ListenConfig).Respond(t.Context(), b, nil)
			if err == nil {
				_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			return err
		})
		c := &writeless{Conn: a}
		qp, err := new(iwarp.Dialer).Initiate(t.Context(), c, nil)
		rig.Must(t, err)
		rig.Must(t, <-accepted)
		synctest.Wait() // the RTR indication has gone
		c.broken.Store(true)
		rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
		<-qp.Done()
		if err := qp.Err(); !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, errWriteless) {
			t.Error(err)
		}
		wc, err := qp.SendCQ().Next(t.Context())
		rig.Must(t, err)
		if wc.Status != iwarp.StatusFlushed {
			t.Errorf("the Send: %v", wc.Err())
		}
		_ = qp.Close()
	})
}

// TestCloseAgain closes what was closed: that is ErrClosed, in words of its own. What has ended by itself can be closed
// once more, and so can QPs.
func TestCloseAgain(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	mr, err := pd.Register(make([]byte, 8), 0)
	rig.Must(t, err)
	overSCTP, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RNIC: rnic}).Listen(
		t.Context(), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	for _, c := range []struct {
		close func() error
		words string
	}{
		{rig.Listen(t, iwarp.ListenConfig{RNIC: rnic}).Close, "the Listener was closed"},
		{overSCTP.Close, "the Listener was closed"},
		{mr.Deregister, "the memory was deregistered"},
		{srq.Close, "the SRQ was closed"},
		{rig.NewCQ(t, rnic, 1).Close, "the CQ was closed"},
		{pd.Close, "the Protection Domain was closed"},
		{rnic.Close, "the RNIC was closed"},
	} {
		rig.Must(t, c.close())
		for range 2 {
			rig.WantSaid(t, "again", c.close(), iwarp.ErrClosed, c.words)
		}
	}
	rig.Must(t, rnic.Shutdown(rig.Within(t)))

	down := iwarp.NewRNIC(iwarp.RNICConfig{})
	rig.Must(t, down.Shutdown(rig.Within(t)))
	rig.Must(t, down.Shutdown(rig.Within(t)))
	rig.WantSaid(t, "Close after Shutdown", down.Close(), iwarp.ErrClosed, "the RNIC was closed")
}

// TestCloseByItself closes what ended with the QP that it was made for, and the QP again.
func TestCloseByItself(t *testing.T) {
	t.Parallel()
	ln := rig.Listen(t, iwarp.ListenConfig{})
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	taken := res.Takes(ln, iwarp.AcceptConfig{PD: res.PD})
	qp, err := (&iwarp.Dialer{QP: rig.Unhurried(iwarp.QPConfig{})}).Dial(rig.Within(t), "tcp", ln.Addr().String())
	rig.Must(t, err)
	rig.Must(t, <-taken)
	for range 2 {
		rig.Should(t, qp.Close())
		rig.Should(t, qp.Abort())
		rig.Should(t, qp.SendCQ().Close())
		rig.Should(t, qp.PD().Close())
	}
}
