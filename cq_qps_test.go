package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestCommittedSRQ counts a Shared Receive Queue once, however many QPs of the CQ receive by it.
//
// Proves Z24.
func TestCommittedSRQ(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd, cq, sends := rig.NewPD(t, rnic), rig.NewCQ(t, rnic, 100), rig.NewCQ(t, rnic, 100)
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20})
	rig.Must(t, err)
	for range 3 {
		rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: sends, RecvCQ: cq, SRQ: srq, SendDepth: 5})
	}
	rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq, RecvCQ: sends, SendDepth: 3, RecvDepth: 7})
	if got, want := cq.Committed(), 20+3; got != want {
		t.Errorf("%d committed to the CQ of the receives, want %d", got, want)
	}
	if got, want := sends.Committed(), 3*5+7; got != want {
		t.Errorf("%d committed to the other CQ, want %d", got, want)
	}
}

// TestCommittedAtEnds: a CQ as deep as Committed does not overflow by connections that send to a Shared Receive Queue
// and end, as long as the program posts as many receives to that as it has polled. Who has stayed is served.
//
// Proves Z24.
func TestCommittedAtEnds(t *testing.T) {
	const depth = 8
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: depth})
	s.CQ = rig.NewCQ(t, s.RNIC, depth)
	cfg := iwarp.AcceptConfig{PD: s.PD, QP: iwarp.QPConfig{SRQ: s.SRQ, RecvCQ: s.CQ,
		SendCQ: rig.NewCQ(t, s.RNIC, 4096)}}
	good, here := rig.Setup{Accept: cfg}.Connect(t)
	if s.CQ.Committed() != s.CQ.Depth() {
		t.Fatalf("%d committed, depth %d", s.CQ.Committed(), s.CQ.Depth())
	}
	postShared(s, t, depth)
	for range 2 {
		for range depth + 1 {
			left := s.SRQ.Query().Receives
			bad, its := rig.Setup{Accept: cfg}.Connect(t)
			rig.PostSmall(bad, 1)
			if left > 0 {
				rig.Until(t, func() bool { return s.SRQ.Query().Receives < left }, "the Send")
			}
			_ = bad.Abort()
			rig.Wait(t, its.Done(), "the end")
			_ = its.Close()
		}
		wc := make([]iwarp.WC, depth+1)
		n := s.CQ.Poll(wc)
		if n != depth || here.State() != iwarp.StateRTS {
			t.Fatalf("%d completions; who sent nothing is in %v: %v", n, here.State(), here.Err())
		}
		postShared(s, t, n)
	}
	rig.PostSmall(good, 1)
	if wc := rig.Next(t, s.CQ); wc.QP != here.QP || wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestNothingAfterOverflow polls a CQ that has overflowed: there is nothing after what was
// lost, although there is room again.
//
// Proves Z23.
func TestNothingAfterOverflow(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	for range 50 { // it may happen that the other QP ends before the Poll
		cq := rig.NewCQ(t, rnic, 2)
		var qps []*iwarp.QP
		for range 2 {
			qp := rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, RecvDepth: 3})
			for id := range uint64(3) {
				rig.Must(t, qp.PostRecv(&iwarp.RecvWR{ID: id}))
			}
			qps = append(qps, qp)
		}
		rig.Must(t, qps[0].Modify(iwarp.StateError)) // flushes three receives
		var wc [4]iwarp.WC
		if n := cq.Poll(wc[:]); n != 2 || wc[0].ID != 0 || wc[1].ID != 1 {
			t.Fatalf("%d completions: %v", n, wc[:n])
		}
		rig.Until(t, func() bool { return qps[1].State() == iwarp.StateError }, "the other QP's end")
		if n := cq.Poll(wc[:]); n != 0 {
			t.Fatalf("%d completions after one that was lost: %v", n, wc[:n])
		}
		if err := cq.Wait(rig.Canceled(t)); !errors.Is(err, iwarp.ErrCQOverflow) {
			t.Fatalf("Wait: %v", err)
		}
		for _, qp := range qps {
			if q := qp.Query(); q.Receives != 0 || !errors.Is(qp.Err(), iwarp.ErrCQOverflow) && qp == qps[1] {
				t.Fatalf("%d receives are left, and the error is %v", q.Receives, qp.Err())
			}
			if qp == qps[1] { // the overflow may still be on its way to the other one
				rig.Must(t, qp.Modify(iwarp.StateIdle))
				for range 3 { // what was lost keeps no place
					rig.Must(t, qp.PostRecv(&iwarp.RecvWR{}))
				}
			}
			_ = qp.Close()
		}
		wantOneEvent(t, rnic, iwarp.EventCQOverflow)
		rig.Must(t, cq.Close())
	}
}

// wantOneEvent takes the events that are there, of which one is of a kind.
func wantOneEvent(t *testing.T, rnic *iwarp.RNIC, kind iwarp.EventKind) {
	t.Helper()
	n := 0
	for ev, err := rnic.NextEvent(rig.Canceled(t)); err == nil; ev, err = rnic.NextEvent(rig.Canceled(t)) {
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
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{
		PD: rig.NewPD(t, rnic), QP: iwarp.QPConfig{SendCQ: rig.NewCQ(t, rnic, 600), RecvCQ: rig.NewCQ(t, rnic, 600)},
	}}.Connect(t)
	wantWait := func(want error, after string) {
		t.Helper()
		for _, cq := range []*iwarp.CQ{res.SendCQ(), res.RecvCQ()} {
			if err := cq.Wait(rig.Canceled(t)); !errors.Is(err, want) {
				t.Errorf("Wait after %s: %v, want %v", after, err, want)
			}
		}
	}
	rig.EndInOrder(t, ini, res)
	wantWait(iwarp.ErrNoQP, "the end")
	rig.Must(t, res.Modify(iwarp.StateError))
	wantWait(iwarp.ErrNoQP, "Idle to Error")
	rig.Must(t, res.Modify(iwarp.StateIdle))
	wantWait(context.Canceled, "Error to Idle")
}

// connectQPs connects two QPs, which are new, or whose connection has ended.
func connectQPs(t *testing.T, ini, res *rig.End) {
	t.Helper()
	ln := rig.Listen(t, iwarp.ListenConfig{})
	accepted := rig.DialInBackground(t, func() error {
		req, err := ln.Accept(rig.Within(t))
		if err == nil {
			err = req.AcceptQP(rig.Within(t), res.QP, iwarp.AcceptConfig{})
		}
		return err
	})
	rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), ini.QP, "tcp", ln.Addr().String()))
	rig.Must(t, <-accepted)
}

// TestWaitAfterReconnecting connects QPs again whose connection has ended, without a Modify in
// between: their CQs have something to wait for again.
func TestWaitAfterReconnecting(t *testing.T) {
	t.Parallel()
	apart := func() (*iwarp.PD, iwarp.QPConfig) {
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
		return rig.NewPD(t, rnic), iwarp.QPConfig{SendCQ: rig.NewCQ(t, rnic, 600), RecvCQ: rig.NewCQ(t, rnic, 600)}
	}
	var s rig.Setup
	s.PD, s.QP = apart()
	s.Accept.PD, s.Accept.QP = apart()
	ini, res := s.Connect(t)
	wantWait := func(want error) {
		t.Helper()
		for _, cq := range []*iwarp.CQ{ini.SendCQ(), ini.RecvCQ(), res.SendCQ(), res.RecvCQ()} {
			if err := cq.Wait(rig.Canceled(t)); !errors.Is(err, want) {
				t.Errorf("Wait: %v, want %v", err, want)
			}
		}
	}
	rig.EndInOrder(t, ini, res)
	wantWait(iwarp.ErrNoQP)
	connectQPs(t, ini, res)
	wantWait(context.Canceled)
	rig.WorksBothWays(t, ini, res)
	rig.Finish(t, ini, res)
	for _, cq := range []*iwarp.CQ{s.QP.SendCQ, s.QP.RecvCQ, s.Accept.QP.SendCQ, s.Accept.QP.RecvCQ} {
		rig.Should(t, cq.Close()) // no QP uses it any more
	}
}

// TestQPsLeave closes QPs of a CQ in any order: what is committed is that of those that are left, and the CQ can be
// closed when none is.
//
// Proves Z24.
func TestQPsLeave(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		cq := rig.NewCQ(t, rnic, 1000)
		var qps [3]*iwarp.QP
		committed := 0
		for i, depth := range [...]int{1, 10, 100} {
			qps[i] = rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq, SendDepth: depth, RecvDepth: depth})
			committed += 2 * depth
		}
		for _, i := range order {
			if err := cq.Close(); err == nil {
				t.Fatalf("%v: closed while it is used", order)
			}
			committed -= 2 * [...]int{1, 10, 100}[i]
			rig.Should(t, qps[i].Close())
			if got := cq.Committed(); got != committed {
				t.Errorf("%v: %d committed without QP %d, want %d", order, got, i, committed)
			}
		}
		rig.Should(t, cq.Close())
	}
}

// TestPolledTogether polls completions of two QPs at once: each has the places of its own requests again.
//
// Proves Z23.
func TestPolledTogether(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq, pd := rig.NewCQ(t, rnic, 4), rig.NewPD(t, rnic)
	var qps [2]*iwarp.QP
	for i := range qps {
		qps[i] = rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cq, SendDepth: 1, RecvDepth: 1})
	}
	for range 2 {
		for _, qp := range qps {
			rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
			rig.Must(t, qp.PostRecv(&iwarp.RecvWR{}))
			rig.Must(t, qp.Modify(iwarp.StateError)) // flushes both
		}
		var wc [5]iwarp.WC
		if n := cq.Poll(wc[:]); n != 4 {
			t.Fatalf("%d completions", n)
		}
		for _, qp := range qps {
			rig.Must(t, qp.Modify(iwarp.StateIdle))
		}
	}
}
