package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// gone returns a context that is over: what waits with it tells whether it would have waited.
func gone(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestCommittedSRQ counts a Shared Receive Queue once, however many QPs of the CQ receive by it.
//
// Proves Z24.
func TestCommittedSRQ(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd, cq, sends := newPD(t, rnic), newCQ(t, rnic, 100), newCQ(t, rnic, 100)
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20})
	must(t, err)
	for range 3 {
		create(t, pd, iwarp.QPConfig{SendCQ: sends, RecvCQ: cq, SRQ: srq, SendDepth: 5})
	}
	create(t, pd, iwarp.QPConfig{SendCQ: cq, RecvCQ: sends, SendDepth: 3, RecvDepth: 7})
	if got, want := cq.Committed(), 20+3; got != want {
		t.Errorf("%d committed to the CQ of the receives, want %d", got, want)
	}
	if got, want := sends.Committed(), 3*5+7; got != want {
		t.Errorf("%d committed to the other CQ, want %d", got, want)
	}
}

// TestCommittedAtEnds: a CQ as deep as Committed does not overflow by connections that send to a Shared Receive Queue and end, as
// long as the program posts as many receives to that as it has polled. Who has stayed is served.
//
// Proves Z24.
func TestCommittedAtEnds(t *testing.T) {
	const depth = 8
	s := newShared(t, iwarp.SRQConfig{Depth: depth})
	s.cq = newCQ(t, s.rnic, depth)
	cfg := iwarp.AcceptConfig{PD: s.pd, QP: iwarp.QPConfig{SRQ: s.srq, RecvCQ: s.cq, SendCQ: newCQ(t, s.rnic, 4096)}}
	good, here := setup{accept: cfg}.connect(t)
	if s.cq.Committed() != s.cq.Depth() {
		t.Fatalf("%d committed, depth %d", s.cq.Committed(), s.cq.Depth())
	}
	s.post(t, depth)
	for range 2 {
		for range depth + 1 {
			left := s.srq.Len()
			bad, its := setup{accept: cfg}.connect(t)
			sends(bad, 1)
			if left > 0 {
				until(t, func() bool { return s.srq.Len() < left }, "the Send")
			}
			_ = bad.Abort()
			wait(t, its.Done(), "the end")
			_ = its.Close()
		}
		wc := make([]iwarp.WC, depth+1)
		n := s.cq.Poll(wc)
		if n != depth || here.State() != iwarp.StateRTS {
			t.Fatalf("%d completions; who sent nothing is in %v: %v", n, here.State(), here.Err())
		}
		s.post(t, n)
	}
	sends(good, 1)
	if wc := next(t, s.cq); wc.QP != here.QP || wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestNothingAfterOverflow polls a CQ that has overflowed: there is nothing after what was
// lost, although there is room again.
//
// Proves Z23.
func TestNothingAfterOverflow(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	for range 50 { // it may happen that the other QP ends before the Poll
		cq := newCQ(t, rnic, 2)
		var qps []*iwarp.QP
		for range 2 {
			qp := create(t, pd, iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, RecvDepth: 3})
			for id := range uint64(3) {
				must(t, qp.PostRecv(&iwarp.RecvWR{ID: id}))
			}
			qps = append(qps, qp)
		}
		must(t, qps[0].Modify(iwarp.StateError)) // flushes three receives
		var wc [4]iwarp.WC
		if n := cq.Poll(wc[:]); n != 2 || wc[0].ID != 0 || wc[1].ID != 1 {
			t.Fatalf("%d completions: %v", n, wc[:n])
		}
		until(t, func() bool { return qps[1].State() == iwarp.StateError }, "the other QP's end")
		if n := cq.Poll(wc[:]); n != 0 {
			t.Fatalf("%d completions after one that was lost: %v", n, wc[:n])
		}
		if err := cq.Wait(gone(t)); !errors.Is(err, iwarp.ErrCQOverflow) {
			t.Fatalf("Wait: %v", err)
		}
		for _, qp := range qps {
			if q := qp.Query(); q.Receives != 0 || !errors.Is(qp.Err(), iwarp.ErrCQOverflow) && qp == qps[1] {
				t.Fatalf("%d receives are left, and the error is %v", q.Receives, qp.Err())
			}
			if qp == qps[1] { // the overflow may still be on its way to the other one
				must(t, qp.Modify(iwarp.StateIdle))
				for range 3 { // what was lost keeps no place
					must(t, qp.PostRecv(&iwarp.RecvWR{}))
				}
			}
			_ = qp.Close()
		}
		wantOneEvent(t, rnic, iwarp.EventCQOverflow)
		must(t, cq.Close())
	}
}

// wantOneEvent takes the events that are there, of which one is of a kind.
func wantOneEvent(t *testing.T, rnic *iwarp.RNIC, kind iwarp.EventKind) {
	t.Helper()
	n := 0
	for ev, err := rnic.NextEvent(gone(t)); err == nil; ev, err = rnic.NextEvent(gone(t)) {
		if ev.Kind == kind {
			n += ev.Count
		}
	}
	if n != 1 {
		t.Fatalf("%d events %v, want one", n, kind)
	}
}

// TestWaitAfterIdle: a CQ whose QPs have ended has something to wait for again when one was made ready
// for another connection, and not before.
func TestWaitAfterIdle(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	ini, res := setup{accept: iwarp.AcceptConfig{
		PD: newPD(t, rnic), QP: iwarp.QPConfig{SendCQ: newCQ(t, rnic, 600), RecvCQ: newCQ(t, rnic, 600)},
	}}.connect(t)
	wantWait := func(want error, after string) {
		t.Helper()
		for _, cq := range []*iwarp.CQ{res.SendCQ(), res.RecvCQ()} {
			if err := cq.Wait(gone(t)); !errors.Is(err, want) {
				t.Errorf("Wait after %s: %v, want %v", after, err, want)
			}
		}
	}
	endInOrder(t, ini, res)
	wantWait(iwarp.ErrNoQP, "the end")
	must(t, res.Modify(iwarp.StateError))
	wantWait(iwarp.ErrNoQP, "Idle to Error")
	must(t, res.Modify(iwarp.StateIdle))
	wantWait(context.Canceled, "Error to Idle")
}

// connectQPs connects two QPs, which are new, or whose connection has ended.
func connectQPs(t *testing.T, ini, res *end) {
	t.Helper()
	ln := listen(t, iwarp.ListenConfig{})
	accepted := dialInBackground(t, func() error {
		req, err := ln.Accept(within(t))
		if err == nil {
			err = req.AcceptQP(within(t), res.QP, iwarp.AcceptConfig{})
		}
		return err
	})
	must(t, new(iwarp.Dialer).DialQP(within(t), ini.QP, "tcp", ln.Addr().String()))
	must(t, <-accepted)
}

// TestWaitAfterReconnecting connects QPs again whose connection has ended, without a Modify in
// between: their CQs have something to wait for again.
func TestWaitAfterReconnecting(t *testing.T) {
	t.Parallel()
	apart := func() (*iwarp.PD, iwarp.QPConfig) {
		rnic := newRNIC(t, iwarp.RNICConfig{})
		return newPD(t, rnic), iwarp.QPConfig{SendCQ: newCQ(t, rnic, 600), RecvCQ: newCQ(t, rnic, 600)}
	}
	var s setup
	s.PD, s.QP = apart()
	s.accept.PD, s.accept.QP = apart()
	ini, res := s.connect(t)
	wantWait := func(want error) {
		t.Helper()
		for _, cq := range []*iwarp.CQ{ini.SendCQ(), ini.RecvCQ(), res.SendCQ(), res.RecvCQ()} {
			if err := cq.Wait(gone(t)); !errors.Is(err, want) {
				t.Errorf("Wait: %v, want %v", err, want)
			}
		}
	}
	endInOrder(t, ini, res)
	wantWait(iwarp.ErrNoQP)
	connectQPs(t, ini, res)
	wantWait(context.Canceled)
	worksBothWays(t, ini, res)
	finish(t, ini, res)
	for _, cq := range []*iwarp.CQ{s.QP.SendCQ, s.QP.RecvCQ, s.accept.QP.SendCQ, s.accept.QP.RecvCQ} {
		should(t, cq.Close()) // no QP uses it any more
	}
}
