package iwarp

import (
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// kept reports whether something is still there when nobody here refers to it any more. No virtual time passes.
func kept[T any](p weak.Pointer[T]) bool {
	for range 3 { // what is in pools goes at the second
		runtime.GC()
	}
	return p.Value() != nil
}

// aMinute passes, of virtual time, and all that is to be done in it is done.
func aMinute() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// flushed returns a QP that had all its receives flushed, and whose CQ has them all. Its memory for requests is gone.
func flushed(t *testing.T, depth int) *QP {
	t.Helper()
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	qp, err := pd.CreateQP(QPConfig{RecvDepth: depth})
	testrig.Must(t, err)
	for range depth {
		testrig.Must(t, qp.PostRecv(&RecvWR{}))
	}
	testrig.Must(t, qp.Modify(StateError))
	if qp.machine != nil {
		t.Error("the QP keeps its queues")
	}
	return qp
}

// TestCQGivesMemoryBack: a CQ that a burst has filled gives its memory back when it has been empty for a while, and not
// before.
func TestCQGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := flushed(t, 64)
		cq := qp.RecvCQ()
		var wc [65]WC
		if n := cq.Poll(wc[:1]); n != 1 {
			t.Errorf("%d completions", n)
		}
		aMinute()
		if n := cq.ring.Cap(); n < 64 {
			t.Errorf("memory for %d completions, while 63 are there", n)
		}
		if n := cq.Poll(wc[:]); n != 63 {
			t.Errorf("%d completions", n)
		}
		if !cq.ring.Slack() {
			t.Error("there is nothing to give back")
		}
		aMinute()
		if cq.ring.Slack() {
			t.Error("memory is left")
		}
		testrig.Must(t, qp.Modify(StateIdle))
		testrig.Must(t, qp.Close())
	})
}

// TestClosedCQForgotten: a CQ that is closed before that, and its QP, are not kept for it.
func TestClosedCQForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := flushed(t, 64)
		rnic, was, of := qp.rnic, weak.Make(qp.RecvCQ()), weak.Make(qp)
		if n := qp.RecvCQ().Poll(make([]WC, 64)); n != 64 {
			t.Errorf("%d completions", n)
		}
		testrig.Must(t, qp.Close())
		if err := qp.Modify(StateIdle); err == nil {
			t.Error("a QP that is closed is modified")
		}
		qp = nil
		if kept(was) || kept(of) {
			t.Error("the CQ or the QP is kept")
		}
		testrig.Must(t, rnic.Close())
	})
}

// filled returns a Shared Receive Queue that was full, and of which so many receives are left.
func filled(t *testing.T, depth, left int) *SRQ {
	t.Helper()
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	srq, err := pd.CreateSRQ(SRQConfig{Depth: depth})
	testrig.Must(t, err)
	for range depth {
		testrig.Must(t, srq.PostRecv(&RecvWR{}))
	}
	for srq.Query().Receives > left {
		srq.takeRecv(new(QP), new(engine.RecvWork))
	}
	return srq
}

// capOf is how many receives the queue has memory for.
func capOf(s *SRQ) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.work.Cap()
}

// TestSRQGivesMemoryBack: a queue that was full and is empty gives its memory back after a while; one that is in use
// keeps it.
func TestSRQGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, empty := filled(t, 64, 63), filled(t, 64, 0)
		if n := capOf(empty); n < 64 {
			t.Errorf("memory for %d receives", n)
		}
		aMinute()
		if n := capOf(used); n < 64 {
			t.Errorf("memory for %d receives, while 63 are there", n)
		}
		if n := capOf(empty); n > 1 {
			t.Errorf("memory for %d receives is left", n)
		}
	})
}

// TestClosedSRQForgotten: a queue that is closed before that is not kept for it.
func TestClosedSRQForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srq := filled(t, 64, 0)
		rnic, was := srq.pd.rnic, weak.Make(srq)
		testrig.Must(t, srq.Close())
		srq = nil
		if kept(was) {
			t.Error("the queue is kept")
		}
		testrig.Must(t, rnic.Close())
	})
}

// TestScratchForgets: what requests are copied to is the RNIC's, for all its QPs. It keeps nothing that they refer to.
func TestScratchForgets(t *testing.T) {
	rnic := NewRNIC(RNICConfig{})
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	fast, err := pd.AllocMR(1, 8)
	testrig.Must(t, err)
	mr, err := pd.Register(make([]byte, 8), LocalWrite)
	testrig.Must(t, err)
	qp, err := pd.CreateQP(QPConfig{})
	testrig.Must(t, err)
	for found := false; !found; { // the pool may lose what is put into it
		testrig.Must(t, qp.PostSend(&SendWR{Op: OpSend, Inline: make([]byte, 200)}))
		as := &Registration{Memory: [][]byte{make([]byte, 8)}}
		testrig.Must(t, qp.PostSend(&SendWR{Op: OpFastRegister, Target: fast, Register: as}))
		_, err := qp.PostSends([]SendWR{{ID: 7, Inline: make([]byte, 200)}, {ID: 8, SGL: []SGE{mr.Slice(0, 8)}}})
		testrig.Must(t, err)
		testrig.Must(t, qp.PostRecv(&RecvWR{ID: 7, SGL: []SGE{mr.Slice(0, 8)}}))
		p, _ := rnic.postings.Get().(*posting)
		if p == nil {
			continue
		}
		found = cap(p.inline) >= 200 && cap(p.list) >= 2 && p.local != nil
		if l := orZero(p.local); !reflect.ValueOf(l).IsZero() {
			t.Errorf("a local operation is kept: %+v", l)
		}
		for _, w := range p.list[:cap(p.list)] {
			if !reflect.ValueOf(w).IsZero() {
				t.Errorf("a request of a list is kept: %+v", w)
			}
		}
		testrig.Must(t, qp.Modify(StateError)) // which makes room
		qp.SendCQ().Poll(make([]WC, 8))
		testrig.Must(t, qp.Modify(StateIdle))
	}
	testrig.Must(t, qp.Close())
}

func orZero(l *localWork) (w localWork) {
	if l != nil {
		w = *l
	}
	return w
}

// TestReceiveOnIdle: a receive that is posted on a QP that is idle keeps its place in the queue, and nothing else.
func TestReceiveOnIdle(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	qp, err := pd.CreateQP(QPConfig{})
	testrig.Must(t, err)
	testrig.Must(t, qp.PostRecv(&RecvWR{}))
	if qp.machine.Slack() {
		t.Error("there is something to give back")
	}
	testrig.Must(t, qp.Close())
}
