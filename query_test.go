package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/google/go-cmp/cmp"
)

// TestQuerySRQ asks a Shared Receive Queue for its attributes, as they change.
func TestQuerySRQ(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 8, Limit: 2, PerQP: 5})
	want := func(receives, taken, limit, qps int) {
		t.Helper()
		got := s.SRQ.Query()
		got.TakenBy = nil // TestSRQ has more than one
		if diff := cmp.Diff(iwarp.SRQAttr{Depth: 8, MaxSGE: iwarp.MaxSGE, PerQP: 5, Receives: receives, Taken: taken,
			Limit: limit, QPs: qps}, got); diff != "" {
			t.Error(diff)
		}
	}
	want(0, 0, 2, 0)
	ini, res := s.Connect(t)
	postShared(s, t, 3)
	want(3, 0, 2, 1)
	rig.PostSmall(ini, 2)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 1 }, "two messages")
	want(1, 2, 0, 1) // the limit was reached, once
	rig.Next(t, s.CQ)
	rig.Next(t, s.CQ)
	want(1, 0, 0, 1)
	if a := res.Query(); a.SRQ != s.SRQ || a.RecvDepth != 0 {
		t.Errorf("QP: %+v", a)
	}
	rig.Finish(t, ini, res)
	want(1, 0, 0, 0)
}

// TestQueryQueues asks a QP for what it was created with.
func TestQueryQueues(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	a := rig.NewQP(t, e.PD, iwarp.QPConfig{SendDepth: 5, MaxInline: -1}).Query()
	if a.SendDepth != 5 || a.RecvDepth != 128 || a.MaxInline != 0 || a.MaxSGE != iwarp.MaxSGE ||
		a.SRQ != nil || a.Num == 0 {
		t.Errorf("%+v", a)
	}
	if s := e.RNIC.Stats(); s.MWs != 0 || s.QPs != 1 {
		t.Errorf("%d windows, %d QPs", s.MWs, s.QPs)
	}
	allocMW(e, iwarp.MWType1)
	if s := e.RNIC.Stats(); s.MWs != 1 {
		t.Errorf("%d windows", s.MWs)
	}
}

// TestEstablished tells a Responder when the Initiator's first FPDU is there, and the Initiator nothing.
func TestEstablished(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		if ev := res.WantEvent(iwarp.EventEstablished); ev.QP != res.QP || ev.QPNum != res.Num() ||
			ev.Count != 1 || ev.RemoteAddr == nil {
			t.Errorf("%v", ev)
		}
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
		for _, e := range []*rig.End{ini, res} {
			rig.Must(t, e.RNIC.Close())
			for {
				ev, err := e.RNIC.NextEvent(rig.Within(t))
				if err != nil {
					break
				}
				if ev.Kind == iwarp.EventEstablished || ev.Kind == iwarp.EventQPFatal {
					t.Errorf("%v", ev)
				}
			}
		}
	})
}

// TestQPFatal ends a QP by an error that is not the connection's.
//
// RDMA verbs 8.3: a CQ overflow is an asynchronous event of the QP, too, which is in Error then.
func TestQPFatal(t *testing.T) {
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	small, large := rig.NewCQ(t, res.RNIC, 1), rig.NewCQ(t, res.RNIC, 200)
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: res.PD,
		QP: iwarp.QPConfig{RecvCQ: small, SendCQ: large}}}.Connect(t)
	for id := range uint64(3) {
		res.MustPostRecv(id)
	}
	for range 2 {
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
	}
	if ev := res.WantEvent(iwarp.EventQPFatal); ev.QP != res.QP || !errors.Is(ev.Err, iwarp.ErrCQOverflow) {
		t.Errorf("%v", ev)
	}
	if a := res.Query(); a.State != iwarp.StateError {
		t.Errorf("%+v", a)
	}
	rig.Until(t, func() bool { return res.Query().Receives == 0 }, "the last Receive is flushed")
}
