package iwarp_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
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
		"completions": {func(t *testing.T, _ *iwarp.CQ, qp *iwarp.QP) { must(t, qp.Modify(iwarp.StateError)) }, nil},
		"the last QP": {func(t *testing.T, _ *iwarp.CQ, qp *iwarp.QP) { must(t, qp.Close()) }, iwarp.ErrNoQP},
		"Close":       {func(t *testing.T, cq *iwarp.CQ, _ *iwarp.QP) { must(t, cq.Close()) }, iwarp.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnic := newRNIC(t, iwarp.RNICConfig{})
				cq := newCQ(t, rnic, 600)
				var qp *iwarp.QP
				if c.want != iwarp.ErrClosed {
					qp = create(t, newPD(t, rnic), iwarp.QPConfig{SendCQ: cq, RecvCQ: cq})
				}
				for id := range uint64(3) {
					if c.want == nil {
						must(t, qp.PostRecv(&iwarp.RecvWR{ID: id}))
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
		other := dialInBackground(t, func() error { return res.RecvCQ().Wait(ctx) })
		until(t, queued, "another consumer that waits")
		if !together {
			cancel()
			<-other
			res.post(&iwarp.SendWR{Op: iwarp.OpWrite})
		} else {
			procs := runtime.GOMAXPROCS(1) // so that the other does not run in between
			cancel()
			res.post(&iwarp.SendWR{Op: iwarp.OpWrite})
			runtime.GOMAXPROCS(procs)
			<-other
		}
		if err := over(t, leader); err != nil {
			t.Error(err)
		}
		_ = res.Abort()
	}
}
