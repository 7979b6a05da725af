package iwarp_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

func postShared(s *rig.SRQRig, t testing.TB, n int) {
	t.Helper()
	for i := range n {
		rig.Must(t, s.SRQ.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{s.MR.Slice(0, 8)}}))
	}
}

// TestSRQ has two connections share receives, and finds out which peer takes more
// than its share.
//
// Proves Z21, Z22, Z31.
func TestSRQ(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 16, Limit: 4})
	modest, a := s.Connect(t)
	greedy, b := s.Connect(t)
	postShared(s, t, 16)
	rig.PostSmall(modest, 2)
	for range 2 {
		if wc := rig.Next(t, s.CQ); wc.Status != iwarp.StatusSuccess || wc.QP != a.QP {
			t.Errorf("completed: %+v", wc)
		}
	}
	rig.PostSmall(greedy, 11)
	for range 11 {
		rig.Next(t, s.CQ)
	}
	ev := a.WantEvent(iwarp.EventSRQLimit)
	if ev.SRQ != s.SRQ || ev.QP != b.QP {
		t.Errorf("event %+v", ev)
	}
	if q := s.SRQ.Query(); q.TakenBy[a.Num()] != 2 || q.TakenBy[b.Num()] != 11 || q.Receives != 3 {
		t.Errorf("%+v", q)
	}
	if err := b.Abort(); err != nil { // in time: the modest one still has receives
		t.Error(err)
	}
	rig.PostSmall(modest, 3)
	for range 3 {
		if wc := rig.Next(t, s.CQ); wc.Status != iwarp.StatusSuccess || wc.QP != a.QP {
			t.Errorf("completed: %+v", wc)
		}
	}
	postShared(s, t, 2)
	s.SRQ.Arm(2) // the first notice was the only one
	rig.PostSmall(modest, 1)
	a.WantEvent(iwarp.EventSRQLimit)
}

// TestSRQLimit takes one receive after the other: the notice comes with the first that
// leaves fewer than the limit, not before, and once.
//
// Proves Z22.
func TestSRQLimit(t *testing.T) {
	const depth = 4
	for limit := range depth + 1 {
		s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: depth, Limit: limit})
		ini, _ := s.Connect(t)
		postShared(s, t, depth)
		for left := depth - 1; left >= 0; left-- {
			rig.PostSmall(ini, 1)
			rig.Next(t, s.CQ)
			if got, want := noticed(s.RNIC), left == limit-1; got != want {
				t.Errorf("limit %d, %d left: a notice: %t", limit, left, got)
			}
		}
	}
}

// noticed reports whether there is an event.
func noticed(r *iwarp.RNIC) bool {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		ev, err := r.NextEvent(over)
		if err != nil || ev.Kind == iwarp.EventSRQLimit {
			return err == nil
		}
	}
}

// TestSRQEmpty lets a Send find no receive: that connection ends, and the other
// goes on when there are receives again.
//
// Proves Z02.
func TestSRQEmpty(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{})
	first, a := s.Connect(t)
	second, b := s.Connect(t)
	rig.PostSmall(first, 1)
	rig.Wait(t, a.Done(), "the end of the connection")
	postShared(s, t, 1)
	rig.PostSmall(second, 1)
	if wc := rig.Next(t, s.CQ); wc.QP != b.QP || wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQRules checks what an SRQ refuses.
func TestSRQRules(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 2})
	for _, cfg := range []iwarp.SRQConfig{{Depth: -1}, {Depth: iwarp.MaxQueueDepth + 1},
		{Depth: 2, Limit: 3}, {Limit: -1}} {
		if _, err := s.PD.CreateSRQ(cfg); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	deepest, err := s.PD.CreateSRQ(iwarp.SRQConfig{Depth: iwarp.MaxQueueDepth})
	rig.Must(t, err)
	rig.Must(t, deepest.Close())
	if _, err := rig.NewPD(t, s.RNIC).CreateQP(iwarp.QPConfig{SRQ: s.SRQ}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a QP of another PD: %v", err)
	}
	ini, res := s.Connect(t)
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a receive on the QP: %v", err)
	}
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("too many elements: %v", err)
	}
	postShared(s, t, 2)
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a third receive: %v", err)
	}
	rig.PostSmall(ini, 1)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 1 }, "the Send")
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("before the first was polled: %v", err)
	}
	rig.Next(t, s.CQ)
	postShared(s, t, 1)
	if err := s.SRQ.Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Close while a QP uses it: %v", err)
	}
	_ = res.Abort()
	rig.Should(t, s.SRQ.Close())
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a receive after Close: %v", err)
	}
}

// half has a peer begin a Send on a QP with the SRQ, and returns both. The QP does not
// wait long for a peer that never closes.
func halfSend(s *rig.SRQRig, t testing.TB) (*iwarp.QP, *rig.Peer) {
	t.Helper()
	ln := rig.Listen(t, iwarp.ListenConfig{PD: s.PD})
	p := rig.DialPeer(t, ln.Addr())
	var qp *iwarp.QP
	started := rig.DialInBackground(t, func() error {
		req, err := ln.Accept(rig.Within(t))
		if err == nil {
			qp, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{SRQ: s.SRQ,
				CloseTimeout: 50 * time.Millisecond}})
		}
		return err
	})
	p.Start(2)
	rig.Must(t, <-started)
	left := s.SRQ.Query().Receives
	h := rdmap.OpSend.Header(1)
	h.MSN = 1
	p.Send(p.FPDU(h, []byte("h")))
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == left-1 }, "the half Send")
	return qp, p
}

// TestSRQComesBack has peers begin Sends and vanish: the places of the receives that they
// held come back, although nobody polls their completions, which tell of each.
func TestSRQComesBack(t *testing.T) {
	const depth = 8
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: depth})
	var dead []*iwarp.QP
	for range 2 {
		postShared(s, t, depth)
		for range depth {
			qp, p := halfSend(s, t)
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
			p.Conn.Close()
			rig.Wait(t, qp.Done(), "the end of the connection")
			dead = append(dead, qp)
		}
	}
	postShared(s, t, depth)
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("one more than there is room for: %v", err)
	}
	for _, qp := range dead { // too late to count
		if wc := rig.Next(t, qp.RecvCQ()); wc.Status != iwarp.StatusFlushed {
			t.Errorf("completed: %+v", wc)
		}
	}
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("one more after the completions were polled: %v", err)
	}
	ini, _ := s.Connect(t)
	rig.PostSmall(ini, 1)
	if wc := rig.Next(t, s.CQ); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQComesBackUnpolled closes a QP, and then its CQ, with completions in it that nobody has polled: the places of
// their receives come back.
func TestSRQComesBackUnpolled(t *testing.T) {
	const depth = 8
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: depth})
	ini, res := s.Connect(t)
	postShared(s, t, depth)
	rig.PostSmall(ini, depth)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 0 }, "the Sends")
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("while the QP is there: %v", err)
	}
	_ = ini.Close()
	rig.Should(t, res.Close())
	rig.Should(t, s.CQ.Close())
	postShared(s, t, depth)
}

// TestSRQShare lets a peer take no more receives than its share; the others keep theirs.
//
// Proves Z02, Z21.
func TestSRQShare(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 16, PerQP: 3})
	postShared(s, t, 16)
	greedy, a := s.Connect(t)
	modest, _ := s.Connect(t)
	rig.PostSmall(greedy, 3)
	for range 3 {
		rig.Next(t, s.CQ) // polled: they do not count any more
	}
	rig.PostSmall(greedy, 3)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 10 }, "three Sends more")
	rig.PostSmall(greedy, 1)
	rig.Wait(t, a.Done(), "the end of the connection")
	if err := a.Err(); !rig.Contains(err, "its share") {
		t.Error(err)
	}
	rig.PostSmall(modest, 3)
	for range 6 {
		if wc := rig.Next(t, s.CQ); wc.Status != iwarp.StatusSuccess {
			t.Errorf("completed: %+v", wc)
		}
	}
}

// TestSRQSlowSends empties an SRQ with Sends that are begun and not ended: each ends its
// connection in time, and others can receive again.
//
// Proves Z21, Z32.
func TestSRQSlowSends(t *testing.T) {
	t.Parallel()
	const depth = 4
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: depth, SendTimeout: 50 * time.Millisecond})
	postShared(s, t, depth)
	for range depth {
		_, p := halfSend(s, t)
		p.WantTerminate(rdmap.CodeCatastrophicStream)
	}
	rig.Until(t, func() bool { return s.SRQ.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.MR.Slice(0, 8)}}) == nil },
		"a place")
	ini, _ := s.Connect(t)
	rig.PostSmall(ini, 1)
	if wc := rig.Next(t, s.CQ); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQReconnect has a connection end with completions that nobody has polled: the places of their
// receives come back at its end, and once. When they are polled in the time of the QP's next connection
// they do not count for that one.
func TestSRQReconnect(t *testing.T) {
	t.Parallel()
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 4})
	ini, res := s.Connect(t)
	postShared(s, t, 4)
	rig.PostSmall(ini, 2)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 2 }, "two Sends")
	rig.EndInOrder(t, ini, res)
	postShared(s, t, 2) // in the places that came back
	rig.Must(t, ini.Modify(iwarp.StateIdle))
	rig.Must(t, res.Modify(iwarp.StateIdle))
	connectQPs(t, ini, res)
	rig.PostSmall(ini, 2)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 2 }, "two Sends of the next connection")
	for range 2 {
		rig.Next(t, s.CQ) // of the earlier connection
	}
	if err := s.SRQ.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("two are posted and two are taken, and one more is: %v", err)
	}
	for range 2 {
		rig.Next(t, s.CQ)
	}
	postShared(s, t, 2)
}
