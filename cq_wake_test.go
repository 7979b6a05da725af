package iwarp_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A waiting is a number of consumers that wait for one CQ.
type waiting chan error

// wait3 has three consumers wait, of whom none polls.
func wait3(cq *iwarp.CQ) waiting {
	w := make(waiting, 3)
	for range cap(w) {
		go func() { w <- cq.Wait(context.Background()) }()
	}
	synctest.Wait()
	return w
}

// wantWoken expects all of them to have returned.
func (w waiting) wantWoken(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	if len(w) != cap(w) {
		t.Errorf("%d of %d consumers are woken", len(w), cap(w))
	}
	for range len(w) {
		if err := <-w; !errors.Is(err, want) {
			t.Errorf("woken with %v, want %v", err, want)
		}
	}
}

// TestEachWaiterWakes has several consumers wait for one CQ: what one call brings wakes each of
// them, as none knows how much of it another takes; and so does the end of the CQ.
func TestEachWaiterWakes(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, cq *iwarp.CQ, qp *iwarp.QP)
		want error
	}{
		"completions": {func(t *testing.T, _ *iwarp.CQ,
			qp *iwarp.QP) {
			rig.Must(t, qp.Modify(iwarp.StateError))
		}, nil},
		"the last QP": {func(t *testing.T, _ *iwarp.CQ, qp *iwarp.QP) { rig.Must(t, qp.Close()) }, iwarp.ErrNoQP},
		"Close":       {func(t *testing.T, cq *iwarp.CQ, _ *iwarp.QP) { rig.Must(t, cq.Close()) }, iwarp.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
				cq := rig.NewCQ(t, rnic, 600)
				var qp *iwarp.QP
				if c.want != iwarp.ErrClosed {
					qp = rig.NewQP(t, rig.NewPD(t, rnic), iwarp.QPConfig{SendCQ: cq, RecvCQ: cq})
				}
				for id := range uint64(3) {
					if c.want == nil {
						rig.Must(t, qp.PostRecv(&iwarp.RecvWR{ID: id}))
					}
				}
				w := wait3(cq)
				c.end(t, cq, qp)
				w.wantWoken(t, c.want)
			})
		})
	}
}

// TestLeadBesideGivenUp has a consumer receive for itself, and another one wait and give up: what
// somebody else completes, also in the moment in which the other gives up, wakes the one that is left.
func TestLeadBesideGivenUp(t *testing.T) {
	for round := range 12 {
		together := round > 0 // which the other may win
		_, res, leader := ledEnd(t.Context(), t, iwarp.QPConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		other := rig.DialInBackground(t, func() error { return res.RecvCQ().Wait(ctx) })
		rig.Until(t, queued, "another consumer that waits")
		if !together {
			cancel()
			<-other
			res.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite})
		} else {
			procs := runtime.GOMAXPROCS(1) // so that the other does not run in between
			cancel()
			res.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite})
			runtime.GOMAXPROCS(procs)
			<-other
		}
		if err := rig.Outcome(t, leader); err != nil {
			t.Error(err)
		}
		_ = res.Abort()
	}
}

// TestReadAfterPolling: a consumer polls for long, and then no longer. What the peer does by itself goes on.
func TestReadAfterPolling(t *testing.T) {
	ini, res := rig.Setup{}.Connect(t)
	from, to := res.MR(100, iwarp.RemoteRead), ini.MR(100, iwarp.LocalWrite)
	for range 20 {
		var wc [1]iwarp.WC
		for range 600 {
			if res.RecvCQ().Poll(wc[:]) != 0 {
				t.Fatal(wc[0])
			}
		}
		if n, err := ini.Read(t.Context(), to.Slice(0, 100), from.Remote(0)); n != 100 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestPollerBesideWaiter: one consumer polls one CQ, and now and then does not; another one waits for messages at the
// other, and gets each.
func TestPollerBesideWaiter(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	sends, err := rnic.CreateCQ(100)
	rig.Must(t, err)
	recvs, err := rnic.CreateCQ(100)
	rig.Must(t, err)
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic),
		QP: iwarp.QPConfig{SendCQ: sends, RecvCQ: recvs}}}.Connect(t)
	var over atomic.Bool
	polls := rig.DialInBackground(t, func() error {
		var wc [1]iwarp.WC
		for !over.Load() {
			sends.Poll(wc[:])
		}
		return nil
	})
	for n := range 200 {
		if n == 100 {
			over.Store(true)
			rig.Must(t, <-polls)
		}
		rig.Must(t, deliver(ini, res))
		_, err := recvs.Next(t.Context())
		rig.Must(t, err)
	}
}
