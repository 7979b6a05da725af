package iwarp

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/machine"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTrimmerForgets: a QP that is closed is not kept until the next time that memory is given back.
func TestTrimmerForgets(t *testing.T) {
	rnic := NewRNIC(RNICConfig{})
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	qp, err := pd.CreateQP(QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rnic.trimmer.add(qp)
	if err := qp.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := rnic.trimmer.waiting(); n > 0 {
		t.Error("the QP is kept")
	}
}

// waiting returns how many queues are to be trimmed, and whether there is a timer.
func (t *trimmer) waiting() (n int, timer bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.due), t.due != nil
}

// TestGivesMemoryBack: the queues of a QP and its CQ, which a burst has filled, give their memory back when they have been
// empty for a while. There is no timer before that, nor after.
func TestGivesMemoryBack(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rnic := NewRNIC(RNICConfig{})
			want := func(want int, when string) {
				t.Helper()
				if n, timer := rnic.trimmer.waiting(); n != want || timer != (want > 0) {
					t.Errorf("%s: %d queues to be trimmed, timer %t", when, n, timer)
				}
			}
			pd, err := rnic.AllocPD()
			if err != nil {
				t.Fatal(err)
			}
			qp, err := pd.CreateQP(QPConfig{RecvDepth: 64})
			if err != nil {
				t.Fatal(err)
			}
			for range 64 {
				if err := qp.PostRecv(&RecvWR{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3 * trimEvery) // of virtual time
			synctest.Wait()
			want(0, "before")
			if err := qp.Modify(StateError); err != nil { // which flushes them
				t.Fatal(err)
			}
			var wc [65]WC
			if n := qp.RecvCQ().Poll(wc[:1]); n != 1 {
				t.Errorf("%d completions", n)
			}
			want(1, "while the CQ is in use")
			if n := qp.RecvCQ().Poll(wc[:]); n != 63 {
				t.Errorf("%d completions", n)
			}
			want(2, "after the burst")
			if closed {
				if err := qp.Close(); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(3 * trimEvery) // of virtual time
			synctest.Wait()
			want(0, "in the end")
			if !closed && (qp.eng.Slack() || qp.recvCQ.ring.Slack()) {
				t.Error("memory is left")
			}
			if err := qp.Modify(StateIdle); (err == nil) == closed {
				t.Errorf("Modify: %v", err)
			}
			want(0, "with nothing to give back")
			_ = qp.Close()
		})
	}
}

// TestGivesScratchBack: what a QP copies requests to goes with the memory of its queues.
func TestGivesScratchBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := NewRNIC(RNICConfig{}).AllocPD()
		testrig.Must(t, err)
		mr, err := pd.AllocMR(1, 8)
		testrig.Must(t, err)
		qp, err := pd.CreateQP(QPConfig{})
		testrig.Must(t, err)
		for range 8 {
			testrig.Must(t, qp.PostSend(&SendWR{Op: OpSend, Inline: make([]byte, 200)}))
			testrig.Must(t, qp.PostSend(&SendWR{Op: OpFastRegister, Target: mr, Register: &Registration{Memory: [][]byte{make([]byte, 8)}}}))
		}
		if qp.posts == nil || cap(qp.posts.inline) == 0 || qp.posts.local == nil {
			t.Error("there is nothing to give back")
		}
		testrig.Must(t, qp.Modify(StateError)) // which flushes them
		var wc [16]WC
		if n := qp.SendCQ().Poll(wc[:]); n != len(wc) {
			t.Errorf("%d completions", n)
		}
		time.Sleep(3 * trimEvery) // of virtual time
		synctest.Wait()
		if qp.posts != nil {
			t.Error("it is still there")
		}
		testrig.Must(t, qp.Close())
	})
}

// TestScratchOfAReceive: a receive that is posted on a QP that is idle keeps its place in the queue, and nothing else.
func TestScratchOfAReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := NewRNIC(RNICConfig{}).AllocPD()
		testrig.Must(t, err)
		qp, err := pd.CreateQP(QPConfig{})
		testrig.Must(t, err)
		time.Sleep(5 * trimEvery) // of virtual time
		testrig.Must(t, qp.PostRecv(&RecvWR{}))
		if qp.posts == nil {
			t.Error("there is nothing to give back")
		}
		time.Sleep(3 * trimEvery)
		synctest.Wait()
		if qp.posts != nil || qp.eng.Slack() {
			t.Errorf("scratch is left: %t", qp.posts != nil)
		}
		testrig.Must(t, qp.Close())
	})
}

// TestPolledMemory: one who polls leaves a large buffer at the connection for what comes next. It is given back when nothing does.
func TestPolledMemory(t *testing.T) {
	var qps []*QP
	for range 10 {
		a, b := sockets(t)
		qps = append(qps, busy(t, a), busy(t, b))
	}
	before, _ := machine.Held()
	for i := range 50 * len(qps) {
		from, to := qps[i%len(qps)], qps[i%len(qps)^1]
		testrig.Must(t, to.PostRecv(&RecvWR{}))
		testrig.Must(t, from.PostSend(&SendWR{Op: OpSend, Unsignaled: true}))
		var wc [1]WC
		for to.RecvCQ().Poll(wc[:]) == 0 {
			runtime.Gosched()
		}
	}
	for range 3 {
		for _, qp := range qps {
			qp.trim()
		}
	}
	after, _ := machine.Held()
	if left := (int64(after) - int64(before)) / int64(len(qps)); left > 8<<10 {
		t.Errorf("%d octets are left of an end", left)
	}
}
