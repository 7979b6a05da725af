package iwarp_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// shared is a Responder's RNIC with a Shared Receive Queue, and connections that
// use it.
type shared struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	srq  *iwarp.SRQ
	cq   *iwarp.CQ
	mr   *iwarp.MR
}

func newShared(t testing.TB, cfg iwarp.SRQConfig) *shared {
	t.Helper()
	return newSharedOn(t, newRNIC(t, iwarp.RNICConfig{}), cfg)
}

func newSharedOn(t testing.TB, rnic *iwarp.RNIC, cfg iwarp.SRQConfig) *shared {
	t.Helper()
	s := &shared{rnic: rnic}
	s.pd = newPD(t, s.rnic)
	s.cq = newCQ(t, s.rnic, 256)
	var err error
	if s.srq, err = s.pd.CreateSRQ(cfg); err != nil {
		t.Fatal(err)
	}
	if s.mr, err = s.pd.Register(make([]byte, 64), iwarp.LocalWrite); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shared) connect(t testing.TB) (ini, res *end) {
	t.Helper()
	return setup{accept: iwarp.AcceptConfig{PD: s.pd, QP: iwarp.QPConfig{SRQ: s.srq, RecvCQ: s.cq}}}.connect(t)
}

func (s *shared) post(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		must(t, s.srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{s.mr.Slice(0, 8)}}))
	}
}

func sends(e *end, n int) {
	e.t.Helper()
	for range n {
		e.post(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, Inline: []byte("send")})
	}
}

// TestSRQ has two connections share receives, and finds out which peer takes more
// than its share.
//
// Proves Z21, Z22, Z31.
func TestSRQ(t *testing.T) {
	s := newShared(t, iwarp.SRQConfig{Depth: 16, Limit: 4})
	modest, a := s.connect(t)
	greedy, b := s.connect(t)
	s.post(t, 16)
	sends(modest, 2)
	for range 2 {
		if wc := next(t, s.cq); wc.Status != iwarp.StatusSuccess || wc.QP != a.QP {
			t.Errorf("completed: %+v", wc)
		}
	}
	sends(greedy, 11)
	for range 11 {
		next(t, s.cq)
	}
	ev := a.wantEvent(iwarp.EventSRQLimit)
	if ev.SRQ != s.srq || ev.QP != b.QP {
		t.Errorf("event %+v", ev)
	}
	if taken := s.srq.Taken(); taken[a.QP] != 2 || taken[b.QP] != 11 || s.srq.Len() != 3 {
		t.Errorf("taken %v, %d left", taken, s.srq.Len())
	}
	if err := b.Abort(); err != nil { // in time: the modest one still has receives
		t.Error(err)
	}
	sends(modest, 3)
	for range 3 {
		if wc := next(t, s.cq); wc.Status != iwarp.StatusSuccess || wc.QP != a.QP {
			t.Errorf("completed: %+v", wc)
		}
	}
	s.post(t, 2)
	s.srq.Arm(2) // the first notice was the only one
	sends(modest, 1)
	a.wantEvent(iwarp.EventSRQLimit)
}

// TestSRQLimit takes one receive after the other: the notice comes with the first that
// leaves fewer than the limit, not before, and once.
//
// Proves Z22.
func TestSRQLimit(t *testing.T) {
	const depth = 4
	for limit := range depth + 1 {
		s := newShared(t, iwarp.SRQConfig{Depth: depth, Limit: limit})
		ini, _ := s.connect(t)
		s.post(t, depth)
		for left := depth - 1; left >= 0; left-- {
			sends(ini, 1)
			next(t, s.cq)
			if got, want := noticed(s.rnic), left == limit-1; got != want {
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
	s := newShared(t, iwarp.SRQConfig{})
	first, a := s.connect(t)
	second, b := s.connect(t)
	sends(first, 1)
	wait(t, a.Done(), "the end of the connection")
	s.post(t, 1)
	sends(second, 1)
	if wc := next(t, s.cq); wc.QP != b.QP || wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQRules checks what an SRQ refuses.
func TestSRQRules(t *testing.T) {
	s := newShared(t, iwarp.SRQConfig{Depth: 2})
	for _, cfg := range []iwarp.SRQConfig{{Depth: -1}, {Depth: iwarp.MaxQueueDepth + 1}, {Depth: 2, Limit: 3}, {Limit: -1}} {
		if _, err := s.pd.CreateSRQ(cfg); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	deepest, err := s.pd.CreateSRQ(iwarp.SRQConfig{Depth: iwarp.MaxQueueDepth})
	must(t, err)
	must(t, deepest.Close())
	if _, err := newPD(t, s.rnic).CreateQP(iwarp.QPConfig{SRQ: s.srq}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a QP of another PD: %v", err)
	}
	ini, res := s.connect(t)
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a receive on the QP: %v", err)
	}
	if err := s.srq.PostRecv(&iwarp.RecvWR{SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("too many elements: %v", err)
	}
	s.post(t, 2)
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a third receive: %v", err)
	}
	sends(ini, 1)
	until(t, func() bool { return s.srq.Len() == 1 }, "the Send")
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("before the first was polled: %v", err)
	}
	next(t, s.cq)
	s.post(t, 1)
	if err := s.srq.Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Close while a QP uses it: %v", err)
	}
	_ = res.Abort()
	should(t, s.srq.Close())
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a receive after Close: %v", err)
	}
}

// half has a peer begin a Send on a QP with the SRQ, and returns both. The QP does not
// wait long for a peer that never closes.
func (s *shared) half(t testing.TB) (*iwarp.QP, *peer) {
	t.Helper()
	ln := listen(t, iwarp.ListenConfig{PD: s.pd})
	p := dialPeer(t, ln.Addr())
	var qp *iwarp.QP
	started := dialInBackground(t, func() error {
		req, err := ln.Accept(within(t))
		if err == nil {
			qp, err = req.Accept(within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{SRQ: s.srq, CloseTimeout: 50 * time.Millisecond}})
		}
		return err
	})
	p.start(2)
	must(t, <-started)
	left := s.srq.Len()
	h := rdmap.OpSend.Header(1)
	h.MSN = 1
	p.send(p.fpdu(h, []byte("h")))
	until(t, func() bool { return s.srq.Len() == left-1 }, "the half Send")
	return qp, p
}

// TestSRQComesBack has peers begin Sends and vanish: the places of the receives that they
// held come back, although nobody polls their completions, which tell of each.
func TestSRQComesBack(t *testing.T) {
	const depth = 8
	s := newShared(t, iwarp.SRQConfig{Depth: depth})
	var dead []*iwarp.QP
	for range 2 {
		s.post(t, depth)
		for range depth {
			qp, p := s.half(t)
			_ = p.conn.(*net.TCPConn).SetLinger(0)
			p.conn.Close()
			wait(t, qp.Done(), "the end of the connection")
			dead = append(dead, qp)
		}
	}
	s.post(t, depth)
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("one more than there is room for: %v", err)
	}
	for _, qp := range dead { // too late to count
		if wc := next(t, qp.RecvCQ()); wc.Status != iwarp.StatusFlushed {
			t.Errorf("completed: %+v", wc)
		}
	}
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("one more after the completions were polled: %v", err)
	}
	ini, _ := s.connect(t)
	sends(ini, 1)
	if wc := next(t, s.cq); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQComesBackUnpolled closes a QP, and then its CQ, with completions in it that nobody has polled: the places of
// their receives come back.
func TestSRQComesBackUnpolled(t *testing.T) {
	const depth = 8
	s := newShared(t, iwarp.SRQConfig{Depth: depth})
	ini, res := s.connect(t)
	s.post(t, depth)
	sends(ini, depth)
	until(t, func() bool { return s.srq.Len() == 0 }, "the Sends")
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("while the QP is there: %v", err)
	}
	_ = ini.Close()
	should(t, res.Close())
	should(t, s.cq.Close())
	s.post(t, depth)
}

// TestSRQShare lets a peer take no more receives than its share; the others keep theirs.
//
// Proves Z02, Z21.
func TestSRQShare(t *testing.T) {
	s := newShared(t, iwarp.SRQConfig{Depth: 16, PerQP: 3})
	s.post(t, 16)
	greedy, a := s.connect(t)
	modest, _ := s.connect(t)
	sends(greedy, 3)
	for range 3 {
		next(t, s.cq) // polled: they do not count any more
	}
	sends(greedy, 3)
	until(t, func() bool { return s.srq.Len() == 10 }, "three Sends more")
	sends(greedy, 1)
	wait(t, a.Done(), "the end of the connection")
	if err := a.Err(); !contains(err, "its share") {
		t.Error(err)
	}
	sends(modest, 3)
	for range 6 {
		if wc := next(t, s.cq); wc.Status != iwarp.StatusSuccess {
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
	s := newShared(t, iwarp.SRQConfig{Depth: depth, SendTimeout: 50 * time.Millisecond})
	s.post(t, depth)
	for range depth {
		_, p := s.half(t)
		p.wantTerminate(rdmap.CodeCatastrophicStream)
	}
	until(t, func() bool { return s.srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.mr.Slice(0, 8)}}) == nil }, "a place")
	ini, _ := s.connect(t)
	sends(ini, 1)
	if wc := next(t, s.cq); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed: %+v", wc)
	}
}

// TestSRQReconnect has a connection end with completions that nobody has polled: the places of their
// receives come back at its end, and once. When they are polled in the time of the QP's next connection
// they do not count for that one.
func TestSRQReconnect(t *testing.T) {
	t.Parallel()
	s := newShared(t, iwarp.SRQConfig{Depth: 4})
	ini, res := s.connect(t)
	s.post(t, 4)
	sends(ini, 2)
	until(t, func() bool { return s.srq.Len() == 2 }, "two Sends")
	endInOrder(t, ini, res)
	s.post(t, 2) // in the places that came back
	must(t, ini.Modify(iwarp.StateIdle))
	must(t, res.Modify(iwarp.StateIdle))
	connectQPs(t, ini, res)
	sends(ini, 2)
	until(t, func() bool { return s.srq.Len() == 2 }, "two Sends of the next connection")
	for range 2 {
		next(t, s.cq) // of the earlier connection
	}
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("two are posted and two are taken, and one more is: %v", err)
	}
	for range 2 {
		next(t, s.cq)
	}
	s.post(t, 2)
}
