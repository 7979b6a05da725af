package iwarp_test

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
	"github.com/goiwarp/iwarp/mpa"
)

// TestContextOfQP: the context ends with the connection, with Err as its cause, also for who asks after that.
func TestContextOfQP(t *testing.T) {
	for how, c := range map[string]struct {
		end func(ini, res *rig.End) error
		is  error
	}{
		"Close by the peer": {func(_, res *rig.End) error { return res.Close() }, io.EOF},
		"Abort by the peer": {func(_, res *rig.End) error { return res.Abort() }, iwarp.ErrConnectionLost},
		"Close here":        {func(ini, _ *rig.End) error { return ini.Close() }, net.ErrClosed},
		"Modify":            {func(ini, _ *rig.End) error { return ini.Modify(iwarp.StateError) }, net.ErrClosed},
	} {
		ini, res := rig.Connect(t)
		before := ini.Context()
		if err := before.Err(); err != nil || before != ini.Context() {
			t.Errorf("%s: before the end: %v", how, err)
		}
		rig.Should(t, c.end(ini, res))
		rig.Wait(t, before.Done(), "the end")
		rig.Wait(t, ini.Done(), "the end") // at the same time
		for _, ctx := range []context.Context{before, ini.Context()} {
			if cause := context.Cause(ctx); cause != ini.Err() || !errors.Is(cause, c.is) || !errors.Is(cause, net.ErrClosed) {
				t.Errorf("%s: the cause is %v, Err %v", how, cause, ini.Err())
			}
		}
	}
}

// TestContextAfterEnd: who asks for the context for the first time after the end gets one that has ended.
func TestContextAfterEnd(t *testing.T) {
	ini, res := rig.Connect(t)
	rig.CloseBoth(t, ini.QP, res.QP)
	rig.Wait(t, ini.Done(), "the end")
	if ctx := ini.Context(); ctx.Err() == nil || context.Cause(ctx) != ini.Err() {
		t.Errorf("%v, and Err is %v", context.Cause(ctx), ini.Err())
	}
}

// TestContextOfNextConnection: each connection of a QP has a context of its own. One that is asked for before the first
// is that of the first.
func TestContextOfNextConnection(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	ctx := qp.Context()
	for n := range 2 {
		res := &rig.End{T: t}
		accepted := res.Takes(ln, iwarp.AcceptConfig{})
		rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), qp, "tcp", ln.Addr().String()))
		rig.Must(t, <-accepted)
		if now := qp.Context(); (now == ctx) != (n == 0) || now.Err() != nil {
			t.Errorf("connection %d: the context is another one's, or has ended: %v", n, now.Err())
		}
		ctx = qp.Context()
		rig.Must(t, res.Close())
		rig.Wait(t, ctx.Done(), "the end")
		rig.Must(t, qp.Modify(iwarp.StateIdle))
		if ctx != qp.Context() {
			t.Error("another context without another connection")
		}
	}
	unused := rig.NewQP(t, qp.PD(), iwarp.QPConfig{})
	ctx = unused.Context()
	rig.Must(t, unused.Close())
	if cause := context.Cause(ctx); !errors.Is(cause, iwarp.ErrClosed) {
		t.Errorf("a QP that had no connection: %v", cause)
	}
}

// TestShutdownOfQP: it is Close where the peer closes in time, and otherwise the end of the context is that of the
// connection.
func TestShutdownOfQP(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
			why := errors.New("the machine goes down")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
			defer cancel()
			began := time.Now()
			if closes {
				time.AfterFunc(time.Second/2, func() { _ = res.Close() })
			}
			err := ini.Shutdown(ctx)
			took := time.Since(began)
			switch {
			case closes && (err != nil || took != time.Second/2):
				t.Errorf("the peer closes: %v after %v", err, took)
			case !closes && (!errors.Is(err, why) || !errors.Is(err, context.DeadlineExceeded) || took != time.Second):
				t.Errorf("the peer does not close: %v after %v", err, took)
			}
			if again := ini.Shutdown(ctx); (again == nil) != closes {
				t.Errorf("again: %v", again)
			}
			_ = res.Close()
		})
	}
}

// waitingCalls are the calls that take a context, at a connection on which nothing comes, and whose Send Queue is full.
func waitingCalls(t *testing.T) map[string]func(context.Context) error {
	depth := iwarp.QPConfig{SendDepth: 1}
	full := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), depth)
	pending, err := full.Submit(t.Context(), &iwarp.SendWR{})
	rig.Must(t, err)
	idle := rig.NewQP(t, full.PD(), iwarp.QPConfig{})
	inbox := rig.NewQP(t, full.PD(), iwarp.QPConfig{Receives: iwarp.Receives{Count: 1}})
	mr, err := full.PD().Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	mem, at := mr.Slice(0, 8), iwarp.Remote{STag: 1}
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	t.Cleanup(func() { deaf.Close() })
	ln := rig.Listen(t, iwarp.ListenConfig{})
	calls := map[string]func(context.Context) error{
		"Recv":         func(ctx context.Context) error { _, err := idle.Recv(ctx, mem); return err },
		"Receive":      func(ctx context.Context) error { _, err := inbox.Receive(ctx); return err },
		"Pending.Wait": func(ctx context.Context) error { _, err := pending.Wait(ctx); return err },
		"CQ.Next":      func(ctx context.Context) error { _, err := full.SendCQ().Next(ctx); return err },
		"CQ.Wait":      func(ctx context.Context) error { return full.SendCQ().Wait(ctx) },
		"NextEvent":    func(ctx context.Context) error { _, err := full.PD().RNIC().NextEvent(ctx); return err },
		"Messages": func(ctx context.Context) error {
			for _, err := range inbox.Messages(ctx) {
				return err
			}
			return nil
		},
		"CQ.All": func(ctx context.Context) error {
			for _, err := range full.SendCQ().All(ctx) {
				return err
			}
			return nil
		},
		"Listener.Accept": func(ctx context.Context) error { _, err := ln.Accept(ctx); return err },
		"Dial": func(ctx context.Context) error {
			_, err := iwarp.Dial(ctx, "tcp", deaf.Addr().String())
			return err
		},
		"DialQP": func(ctx context.Context) error {
			return new(iwarp.Dialer).DialQP(ctx, idle, "tcp", deaf.Addr().String())
		},
		"Initiate": func(ctx context.Context) error {
			_, err := new(iwarp.Dialer).Initiate(ctx, rig.DialTCP(t, deaf.Addr().String()), nil)
			return err
		},
		"Respond": func(ctx context.Context) error {
			_, err := new(iwarp.ListenConfig).Respond(ctx, rig.DialTCP(t, deaf.Addr().String()), nil)
			return err
		},
		"Accept": func(ctx context.Context) error {
			_, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{}), rig.Frame(rig.Request(2, rig.Enhanced(peerToPeer)...)))
			_, err := req.Accept(ctx, iwarp.AcceptConfig{AwaitRTR: true})
			return err
		},
		"Shutdown": func(ctx context.Context) error {
			ini, _ := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
			return ini.Shutdown(ctx)
		},
		"RNIC.Shutdown": func(ctx context.Context) error {
			ini, _ := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
			return ini.RNIC.Shutdown(ctx)
		},
	}
	for name, call := range oneCalls(mem, at) {
		calls[name] = func(ctx context.Context) error { return call(ctx, full) }
		calls[name+", under way"] = func(ctx context.Context) error {
			return call(ctx, rig.NewQP(t, full.PD(), iwarp.QPConfig{}))
		}
	}
	return calls
}

var peerToPeer = mpa.Enhanced{A: true, B: true, IRD: 1, ORD: 1}

// oneCalls are the calls that post one request and wait for it.
func oneCalls(mem iwarp.SGE, at iwarp.Remote) map[string]func(context.Context, *iwarp.QP) error {
	return map[string]func(context.Context, *iwarp.QP) error{
		"Send":  func(ctx context.Context, qp *iwarp.QP) error { return qp.Send(ctx, mem) },
		"Write": func(ctx context.Context, qp *iwarp.QP) error { _, err := qp.Write(ctx, mem, at); return err },
		"Read":  func(ctx context.Context, qp *iwarp.QP) error { _, err := qp.Read(ctx, mem, at); return err },
		"WriteImm": func(ctx context.Context, qp *iwarp.QP) error {
			_, err := qp.WriteImm(ctx, mem, at, 1)
			return err
		},
		"FetchAdd":    func(ctx context.Context, qp *iwarp.QP) error { _, err := qp.FetchAdd(ctx, at, 1); return err },
		"CompareSwap": func(ctx context.Context, qp *iwarp.QP) error { _, err := qp.CompareSwap(ctx, at, 1, 2); return err },
		"Submit": func(ctx context.Context, qp *iwarp.QP) error {
			p, err := qp.Submit(ctx, &iwarp.SendWR{SGL: []iwarp.SGE{mem}})
			if err == nil {
				_, err = p.Wait(ctx)
			}
			return err
		},
	}
}

// TestCallsSayWhyCanceled: the error of a call whose context has ended wraps the context's error, and the cause that
// the caller gave, whether it has ended before the call or during it.
func TestCallsSayWhyCanceled(t *testing.T) {
	why := errors.New("the user went away")
	for name, call := range waitingCalls(t) {
		for _, before := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if before {
				cancel(why)
			} else {
				time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
			}
			if err := call(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
				t.Errorf("%s, ended before it %t: %v", name, before, err)
			}
			cancel(nil)
		}
	}
}

// TestCallsSayEOF: the error of a call on a connection that the peer has ended in order is io.EOF, whether the call
// waits for what cannot come any more, or begins after the end.
func TestCallsSayEOF(t *testing.T) {
	s := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 4}, RecvDepth: 4}}}
	ini, res := s.Connect(t)
	inbox, other := receiving(iwarp.Receives{Count: 1}).Connect(t)
	mem := ini.MR(8, iwarp.LocalWrite).Slice(0, 8)
	waiting := map[string]func() error{
		"Recv":    func() error { _, err := ini.Recv(rig.Within(t), mem); return err },
		"Receive": func() error { _, err := inbox.Receive(rig.Within(t)); return err },
	}
	during := make(map[string]<-chan error)
	for name, call := range waiting {
		during[name] = rig.DialInBackground(t, call)
	}
	rig.Must(t, res.Close())
	rig.Must(t, other.Close())
	for name, err := range during {
		if err := <-err; !errors.Is(err, io.EOF) {
			t.Errorf("%s that waits: %v", name, err)
		}
	}
	rig.Wait(t, ini.Done(), "the end")
	after := waiting
	for name, call := range oneCalls(mem, iwarp.Remote{STag: 1}) {
		after[name] = func() error { return call(rig.Within(t), ini.QP) }
	}
	after["CQ.Next"] = func() error { _, err := ini.RecvCQ().Next(rig.Within(t)); return err }
	after["CQ.Wait"] = func() error { return ini.SendCQ().Wait(rig.Within(t)) }
	after["PostSend"] = func() error { return ini.PostSend(&iwarp.SendWR{}) }
	after["PostRecv"] = func() error { return ini.PostRecv(&iwarp.RecvWR{}) }
	after["CloseWrite"] = func() error { return ini.CloseWrite() }
	after["Err"] = func() error { return ini.Err() }
	for name, call := range after {
		if err := call(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ini.Close(); err != nil { // which wanted the end, too
		t.Errorf("Close: %v", err)
	}
}
