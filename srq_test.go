package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
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
	s := &shared{rnic: newRNIC(t, iwarp.RNICConfig{})}
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
		if err := s.srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{s.mr.Slice(0, 8)}}); err != nil {
			t.Fatal(err)
		}
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
	if _, err := newPD(t, s.rnic).CreateQP(iwarp.QPConfig{SRQ: s.srq}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a QP of another PD: %v", err)
	}
	ini, res := s.connect(t)
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a receive on the QP: %v", err)
	}
	if err := s.srq.PostRecv(&iwarp.RecvWR{SGL: make([]iwarp.SGE, 9)}); !errors.Is(err, iwarp.ErrInvalid) {
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
	if err := s.srq.Close(); err != nil {
		t.Error(err)
	}
	if err := s.srq.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a receive after Close: %v", err)
	}
}
