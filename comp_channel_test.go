package iwarp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
)

func newChannel(t testing.TB, r *iwarp.RNIC) *iwarp.CompChannel {
	t.Helper()
	c, err := r.NewCompChannel()
	must(t, err)
	return c
}

// channelCQ has a CQ of a channel's.
func channelCQ(t testing.TB, c *iwarp.CompChannel) *iwarp.CQ {
	t.Helper()
	cq, err := c.CreateCQ(64)
	must(t, err)
	return cq
}

// TestCompChannel waits for several CQs at once.
//
// RDMA verbs 8: a notice comes once for an Arm, also for one of solicited completions, and not for what
// is there already; of which CQ it is can be told.
func TestCompChannel(t *testing.T) {
	res := newEnd(t, iwarp.RNICConfig{})
	ch := newChannel(t, res.rnic)
	a, b := channelCQ(t, ch), channelCQ(t, ch)
	one, atA := setup{accept: iwarp.AcceptConfig{PD: res.pd, QP: iwarp.QPConfig{RecvCQ: a, SendCQ: b}}}.connect(t)
	two, atB := setup{accept: iwarp.AcceptConfig{PD: res.pd, QP: iwarp.QPConfig{RecvCQ: b}}}.connect(t)
	none := func(why string) {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if cq, err := ch.Next(ended); cq != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a notice of %v: %v", why, cq, err)
		}
	}
	take := func(want *iwarp.CQ) {
		t.Helper()
		cq, err := ch.Next(within(t))
		if err != nil || cq != want {
			t.Fatalf("a notice of %v, want %v: %v", cq, want, err)
		}
	}
	receives := func(from, at *end, solicited bool) {
		t.Helper()
		at.postRecv(1)
		from.post(&iwarp.SendWR{Op: iwarp.OpSend, Solicited: solicited, Unsignaled: true})
		until(t, func() bool { return at.Query().Receives == 0 }, "a message")
	}
	receives(one, atA, false)
	none("not armed")
	a.Arm(false)
	none("it was there before")
	next(t, a)
	receives(one, atA, false)
	receives(one, atA, false)
	take(a)
	none("armed once")
	a.Arm(true)
	b.Arm(true)
	receives(one, atA, false)
	receives(two, atB, false)
	none("nothing solicited")
	receives(two, atB, true)
	receives(one, atA, true)
	take(b)
	take(a)
	b.Arm(false)
	receives(two, atB, false)
	b.Arm(false)
	receives(two, atB, false)
	take(b)
	none("two notices of one CQ are one")
	select {
	case <-a.Events():
		t.Error("the notice of a CQ that has a channel is on Events")
	default:
	}
	b.Arm(false)
	receives(two, atB, false)
	finish(t, one, atA)
	finish(t, two, atB)
	if err := ch.Close(); !errors.Is(err, iwarp.ErrBadState) || !contains(err, "CQs that use it: 2") {
		t.Error(err)
	}
	must(t, a.Close())
	must(t, b.Close())
	none("of a CQ that is closed")
	must(t, ch.Close())
	if err := ch.Close(); !errors.Is(err, iwarp.ErrClosed) {
		t.Error(err)
	}
	if _, err := ch.CreateCQ(1); !errors.Is(err, iwarp.ErrClosed) {
		t.Error(err)
	}
}

// TestCompChannelWaiters has several goroutines wait: each notice wakes one of them, and the end all.
func TestCompChannelWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true}.connect(t)
		ch := newChannel(t, res.rnic)
		var qps []*iwarp.QP
		for range 3 {
			qps = append(qps, create(t, res.pd, iwarp.QPConfig{SendCQ: channelCQ(t, ch)}))
		}
		var mu sync.Mutex
		seen, ended := map[*iwarp.CQ]int{}, 0
		for range 2 {
			go func() {
				for {
					cq, err := ch.Next(t.Context())
					mu.Lock()
					if err != nil {
						ended++
						should(t, is(err, iwarp.ErrClosed))
						mu.Unlock()
						return
					}
					seen[cq]++
					mu.Unlock()
				}
			}()
		}
		synctest.Wait() // both wait
		for _, qp := range qps {
			qp.SendCQ().Arm(false)
			must(t, qp.PostSend(&iwarp.SendWR{}))
			must(t, qp.Modify(iwarp.StateError)) // which flushes it
		}
		synctest.Wait()
		for _, qp := range qps {
			if n := seen[qp.SendCQ()]; n != 1 {
				t.Errorf("%d notices", n)
			}
			must(t, qp.Close())
			must(t, qp.SendCQ().Close())
		}
		must(t, ch.Close())
		synctest.Wait()
		if ended != 2 {
			t.Errorf("%d of 2 have ended", ended)
		}
		finish(t, ini, res)
	})
}

// TestCompChannelForgets: a CQ that is closed takes its own notice along, and nobody else's.
func TestCompChannelForgets(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	ch := newChannel(t, e.rnic)
	var qps []*iwarp.QP
	for range 3 {
		qp := create(t, e.pd, iwarp.QPConfig{SendCQ: channelCQ(t, ch)})
		qp.SendCQ().Arm(false)
		must(t, qp.PostSend(&iwarp.SendWR{}))
		must(t, qp.Modify(iwarp.StateError))
		qps = append(qps, qp)
	}
	must(t, qps[1].Close())
	must(t, qps[1].SendCQ().Close())
	for _, i := range []int{0, 2} {
		if cq, err := ch.Next(within(t)); err != nil || cq != qps[i].SendCQ() {
			t.Errorf("a notice of %v, want %v: %v", cq, qps[i].SendCQ(), err)
		}
	}
}

// is returns an error that is not what is wanted.
func is(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return err
}

// TestCompChannelLimits: a CQ that cannot be had does not keep the channel open, nor does a closed RNIC give one.
func TestCompChannelLimits(t *testing.T) {
	r := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{CQs: 1}})
	ch := newChannel(t, r)
	cq := channelCQ(t, ch)
	if _, err := ch.CreateCQ(1); !errors.Is(err, iwarp.ErrLimit) {
		t.Error(err)
	}
	must(t, cq.Close())
	if _, err := ch.CreateCQ(0); !errors.Is(err, iwarp.ErrInvalid) {
		t.Error(err)
	}
	must(t, ch.Close())
	must(t, r.Close())
	if _, err := r.NewCompChannel(); !errors.Is(err, iwarp.ErrClosed) {
		t.Error(err)
	}
}
