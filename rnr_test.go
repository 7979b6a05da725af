package iwarp_test

import (
	"errors"
	"path"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// overLayers leads a dialogue over each lower layer, between ends of which the Responder has a configuration. Time is
// virtual, and passes by an hour, but over the kernel's TCP.
func overLayers(t *testing.T, cfg iwarp.QPConfig, f func(t *testing.T, ini, res *rig.End, passHour func())) {
	t.Run("TCP", func(t *testing.T) {
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: cfg}}.Connect(t)
		f(t, ini, res, func() {})
	})
	virtual := func(name string, connect func(t *testing.T) (ini, res *rig.End)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ini, res := connect(t)
				f(t, ini, res, func() { time.Sleep(time.Hour) })
			})
		})
	}
	virtual("pipe", func(t *testing.T) (ini, res *rig.End) {
		return rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: cfg}}.Connect(t)
	})
	virtual("ahead of order", func(t *testing.T) (ini, res *rig.End) {
		a, b := rig.AwarePair(anyOrder)
		ini, res = rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
		res.QP = rig.NewQP(t, res.PD, cfg)
		ini.Over(a, mpa.RoleInitiator)
		res.Over(b, mpa.RoleResponder)
		return ini, res
	})
	virtual("SCTP", func(t *testing.T) (ini, res *rig.End) {
		return rig.NewLinkedPair(t, testrig.Link{Delay: time.Millisecond}).Connect(cfg)
	})
}

// TestRNR has Sends wait for receives, over each lower layer. A Write and a Read after them wait with them, so that the
// Read has what a Send has brought; a Read of the other end's completes.
//
// Proves D26, P40.
func TestRNR(t *testing.T) {
	overLayers(t, iwarp.QPConfig{RNR: iwarp.RNRPolicy{Bytes: 1 << 20}},
		func(t *testing.T, ini, res *rig.End, passHour func()) {
			const n = 3000
			ctx, src := t.Context(), ini.Filled(n, 1, iwarp.LocalWrite|iwarp.RemoteRead)
			first, written := res.MR(n, iwarp.LocalWrite|iwarp.RemoteRead), res.MR(n, iwarp.RemoteWrite)
			for range 5 {
				rig.Must(t, ini.Send(ctx, src.Slice(0, n)))
			}
			_, err := ini.Write(ctx, src.Slice(0, n), written.Remote(0))
			rig.Must(t, err)
			sink, read := ini.MR(n, iwarp.LocalWrite), make(chan error, 1)
			go func() {
				_, err := ini.Read(ctx, sink.Slice(0, n), first.Remote(0))
				read <- err
			}()
			back := res.MR(n, iwarp.LocalWrite)
			_, err = res.Read(ctx, back.Slice(0, n), src.Remote(0))
			rig.Must(t, err)
			rig.Same(t, "Read", back, src)
			passHour()
			for id := range uint64(5) {
				to := first
				if id > 0 {
					to = res.MR(n, iwarp.LocalWrite)
				}
				res.MustPostRecv(id, to.Slice(0, n))
				if wc := res.WantReceived(id, iwarp.StatusSuccess); wc.Length != n {
					t.Errorf("%d bytes", wc.Length)
				}
				rig.Same(t, "Send", to, src)
			}
			rig.Must(t, <-read)
			rig.Same(t, "Read after Sends", sink, src)
			rig.Same(t, "Write after Sends", written, src)
			rig.Works(t, ini, res)
			rig.Finish(t, ini, res)
		})
}

// TestRNRBound has far more sent than may wait: the peer is held back, and everything comes when there are receives.
func TestRNRBound(t *testing.T) {
	const n, messages, waiting = 10_000, 300, 8
	cfg := iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: waiting}}
	overLayers(t, cfg, func(t *testing.T, ini, res *rig.End, passHour func()) {
		src := ini.Filled(n, 1, 0)
		sent := make(chan error, 1)
		go func() {
			for range messages {
				if err := ini.Send(t.Context(), src.Slice(0, n)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		received := func() uint64 { return res.Stats().Received[rdmap.OpSend].Messages }
		// Not all that wait need be Sends: an Initiator that hears nothing sends empty Writes.
		rig.Until(t, func() bool { return received() >= waiting/2 }, "messages wait")
		passHour()
		if err := ini.Err(); err != nil {
			t.Fatal(err)
		}
		if got := received(); got > messages/2 {
			t.Errorf("%d messages were received, and %d may wait", got, waiting)
		}
		to := res.MR(n, iwarp.LocalWrite)
		for id := range uint64(messages) {
			res.MustPostRecv(id, to.Slice(0, n))
			res.WantReceived(id, iwarp.StatusSuccess)
			rig.Same(t, "Send", to, src)
		}
		rig.Must(t, <-sent)
		rig.Finish(t, ini, res)
	})
}

// TestRNREnd: the peer closes in order after Sends that wait. They are received, and then the end is told.
func TestRNREnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 5}}}}.Connect(t)
		for range 4 {
			rig.Must(t, ini.Send(t.Context(), iwarp.SGE{}))
		}
		rig.Must(t, ini.CloseWrite())
		time.Sleep(time.Hour)
		for id := range uint64(4) {
			if s := res.State(); s != iwarp.StateRTS {
				t.Fatalf("%v", s)
			}
			res.MustPostRecv(id)
			res.WantReceived(id, iwarp.StatusSuccess)
		}
		res.WantEvent(iwarp.EventHalfClosed)
		rig.Finish(t, ini, res)
	})
}

// TestRNRShared: QPs whose Sends wait for a Shared Receive Queue get what is posted to it, each as much as it needs.
// One that holds its share loses its connection.
func TestRNRShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{PerQP: 2})
		rig.Must(t, err)
		cq, err := res.RNIC.CreateCQ(100)
		rig.Must(t, err)
		join := func() (ini *rig.End) {
			a, b := rig.AwarePair(rig.AwareLink{EMSS: 1420})
			ini = rig.NewEnd(t, iwarp.RNICConfig{})
			its := &rig.End{T: t, RNIC: res.RNIC, PD: res.PD}
			its.QP = rig.NewQP(t, res.PD, iwarp.QPConfig{SRQ: srq, RecvCQ: cq, RNR: iwarp.RNRPolicy{Messages: 10}})
			ini.Over(a, mpa.RoleInitiator)
			its.Over(b, mpa.RoleResponder)
			return ini
		}
		one, other := join(), join()
		for range 3 {
			rig.Must(t, one.Send(t.Context(), iwarp.SGE{}))
			rig.Must(t, other.Send(t.Context(), iwarp.SGE{}))
		}
		synctest.Wait()
		for id := range uint64(6) {
			rig.Must(t, srq.PostRecv(&iwarp.RecvWR{ID: id}))
			if wc := rig.Next(t, cq); wc.ID != id || wc.Status != iwarp.StatusSuccess {
				t.Fatalf("%v", &wc)
			}
		}
		for range 3 { // a share of two, as nothing is polled
			rig.Must(t, srq.PostRecv(&iwarp.RecvWR{}))
			rig.Must(t, one.Send(t.Context(), iwarp.SGE{}))
		}
		synctest.Wait()
		if err := one.Err(); !rig.Contains(err, "no buffer") {
			t.Errorf("%v", err)
		}
	})
}

// TestRNRSharedByAll: a Shared Receive Queue without shares has each QP wait, whatever it holds of it.
func TestRNRSharedByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{})
		rig.Must(t, err)
		ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{PD: res.PD,
			QP: iwarp.QPConfig{SRQ: srq, RNR: iwarp.RNRPolicy{Messages: 10}}}}.Connect(t)
		for id := range uint64(3) {
			rig.Must(t, ini.Send(t.Context(), iwarp.SGE{}))
			synctest.Wait()
			rig.Must(t, srq.PostRecv(&iwarp.RecvWR{ID: id}))
			res.WantReceived(id, iwarp.StatusSuccess)
		}
	})
}

// TestRNRGoesOnAtOnce: when a receive is posted, a peer that was held back is heard in that moment.
func TestRNRGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 2}}}}.Connect(t)
		for range 4 { // of which the last two are not received
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend})
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		began := time.Now()
		for id := range uint64(4) {
			res.MustPostRecv(id)
			res.WantReceived(id, iwarp.StatusSuccess)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		rig.Finish(t, ini, res)
	})
}

// TestRNRWait: RNRPolicy.Wait bounds how long messages wait without a receive, whether the peer is held back or not, and
// ends no connection on which nothing waits.
func TestRNRWait(t *testing.T) {
	for _, bound := range []int{2, 100} {
		synctest.Test(t, func(t *testing.T) {
			cfg := iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: bound, Wait: time.Minute}}
			ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: cfg}}.Connect(t)
			time.Sleep(time.Hour)
			for range 4 {
				ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend})
			}
			for id := range uint64(2) {
				time.Sleep(50 * time.Second)
				res.MustPostRecv(id)
				res.WantReceived(id, iwarp.StatusSuccess)
			}
			time.Sleep(59 * time.Second)
			if err := res.Err(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			wantNoReceive(t, res.Err(), false)
			wantNoReceive(t, ini.WantEnd(), true)
		})
	}
}

// TestRNRConfig refuses bounds that are none.
func TestRNRConfig(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	for _, u := range []iwarp.RNRPolicy{{Bytes: -1}, {Messages: -1}, {Wait: -1}} {
		if _, err := pd.CreateQP(iwarp.QPConfig{RNR: u}); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", u, err)
		}
	}
}

// TestRNRClosed closes an end for which Sends wait, in each way: none of them is lost without a word. Both ends learn
// that they found no receive, as if they had not waited.
//
// Proves D37.
func TestRNRClosed(t *testing.T) {
	for name, ends := range map[string]func(*testing.T, *rig.End) error{
		"Close":    func(_ *testing.T, e *rig.End) error { return e.Close() },
		"Shutdown": func(t *testing.T, e *rig.End) error { return e.RNIC.Shutdown(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			overLayers(t, iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 2}},
				func(t *testing.T, ini, res *rig.End, _ func()) {
					rig.TwoWait(t, ini, res)
					err := ends(t, res)
					wantNoReceive(t, err, false)
					if !rig.Contains(err, "the consumer closes without a receive") {
						t.Errorf("%v", err)
					}
					wantNoReceive(t, ini.WantEnd(), true)
				})
		})
	}
}

// wantNoReceive expects the error of a connection that has ended over a Send without a receive.
func wantNoReceive(t *testing.T, err error, byPeer bool) {
	t.Helper()
	var end *iwarp.TerminateError
	if !errors.As(err, &end) || end.Code != rdmap.CodeDDPInvalidMSNNoBuffer || end.Remote != byPeer {
		t.Errorf("%v", err)
	}
}

// TestRNRAborted aborts an end that holds its peer back, over each lower layer.
func TestRNRAborted(t *testing.T) {
	overLayers(t, iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 2}}, func(t *testing.T, ini, res *rig.End, _ func()) {
		rig.TwoWait(t, ini, res)
		rig.Must(t, res.Abort())
		if err := ini.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%v", err)
		}
	})
}

// TestRNRLost aborts an end that is held back: the other one learns that, although it receives nothing, where the lower
// layer tells.
func TestRNRLost(t *testing.T) {
	overLayers(t, iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 2}}, func(t *testing.T, ini, res *rig.End, _ func()) {
		if over := path.Base(t.Name()); over != "SCTP" && (over != "TCP" || runtime.GOOS != "linux") {
			return
		}
		rig.TwoWait(t, ini, res)
		rig.Must(t, ini.Abort())
		if err := res.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%v", err)
		}
	})
}

// TestRNRIdle: IdleTimeout bounds how long Sends wait when nobody posts a receive, whether the peer is held back or
// not. A consumer that takes its time is not idle.
func TestRNRIdle(t *testing.T) {
	for _, bound := range []int{2, 100} {
		synctest.Test(t, func(t *testing.T) {
			cfg := iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: bound}, IdleTimeout: time.Minute}
			ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: cfg}}.Connect(t)
			for range 4 {
				ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend})
			}
			for id := range uint64(2) {
				time.Sleep(50 * time.Second)
				res.MustPostRecv(id)
				res.WantReceived(id, iwarp.StatusSuccess)
			}
			time.Sleep(50 * time.Second)
			if err := res.Err(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			if err := res.Err(); !errors.Is(err, iwarp.ErrIdle) || !rig.Contains(err, "no receive was posted") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRNRHeldBytes: what waits for receives counts against what all peers of an RNIC may have it hold. The connection
// that has most of it ends as without RNR; others have the room.
//
// Proves Z01.
func TestRNRHeldBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldBytes: 5000}})
		connect := func() (ini, res *rig.End) {
			return rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic),
				QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 10}}}}.Connect(t)
		}
		send := func(e *rig.End, n int) { rig.Must(t, e.Send(t.Context(), e.Filled(n, 1, 0).Slice(0, n))) }
		big, its := connect()
		send(big, 4000)
		small, other := connect()
		send(small, 1000)
		wantNoReceive(t, big.WantEnd(), true)
		if err := its.WantEnd(); !errors.Is(err, iwarp.ErrLimit) {
			t.Errorf("%v", err)
		}
		send(small, 3000)
		for id, n := range []int{1000, 3000} {
			other.MustPostRecv(uint64(id), other.MR(n, iwarp.LocalWrite).Slice(0, n))
			other.WantReceived(uint64(id), iwarp.StatusSuccess)
		}
		send(small, 4000)
		synctest.Wait()
		if err := small.Err(); err != nil {
			t.Error(err)
		}
	})
}
