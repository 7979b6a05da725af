//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
)

// beside returns another queue of the program's with the same CQ.
func (q *queue) beside() *queue {
	q.t.Helper()
	other := *q
	var errno syscall.Errno
	other.qp, other.number, errno = q.d.CreateQP(QPAttr{
		Context: q.context, PD: q.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 16, RecvDepth: 16, SendSGEs: 1,
		RecvSGEs: 1, MaxInline: 64, SignalAll: true, Token: 79,
	})
	must(q.t, errno)
	must(q.t, q.d.ModifyQP(other.qp, StateInit))
	return &other
}

// twoOnOneCQ are two queues with one CQ, each with the queue that it is connected to.
func twoOnOneCQ(t *testing.T) (a, b, ofA, ofB *queue) {
	t.Helper()
	a, ofA, ofB = roce(t), roce(t), roce(t)
	b = a.beside()
	a.meet(ofA.number)
	ofA.meet(a.number)
	b.meet(ofB.number)
	ofB.meet(b.number)
	exchange(t, a, ofA)
	exchange(t, b, ofB)
	return a, b, ofA, ofB
}

// TestPollPastSleepers: receives that sleep, as the program is not to know yet that the peer has gone, do not hide a
// completion after them, of which there is no event any more. "If the return value is ... strictly less than
// num_entries, then the CQ was emptied" (ibv_poll_cq(3)).
func TestPollPastSleepers(t *testing.T) {
	a, b, leaves, stays := twoOnOneCQ(t)
	for id := range uint64(3) {
		a.recv(10+id, a.region("none", accessLocalWrite))
	}
	must(t, leaves.d.DestroyQP(leaves.qp))
	for _, end := range a.inner().ends() {
		<-end.Done() // the receives are in the CQ
	}
	stays.recv(4, stays.region("....", accessLocalWrite))
	b.send(5, wrSend, b.region("next", 0), nil)
	until(t, "the completion", func() bool { return b.inner().sender().Query().Sends == 0 })
	var wc [1]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 1)
	want(t, "the completion", [2]uint64{wc[0].ID, uint64(wc[0].Status)}, [2]uint64{5, 0})
}

// TestFlushedBehindSleepers: a flushed receive that a poll finds when the QP has gone to ERR comes after those that
// still sleep, and by itself if there are none.
func TestFlushedBehindSleepers(t *testing.T) {
	a, _ := met(t)
	q := a.inner()
	found := func(id uint64) (told bool) {
		q.recvCQ.polling.Lock()
		defer q.recvCQ.polling.Unlock()
		var wc WC
		return wc.set(&iwarp.WC{ID: id, QP: q.qp, Op: iwarp.OpRecv, Status: iwarp.StatusFlushed})
	}
	want(t, "while the QP is up", found(1), false)
	q.state.Store(StateErr)
	want(t, "behind another", found(2), false)
	var wcs [4]WC
	want(t, "completions", a.d.Poll(a.cq, wcs[:]), 2)
	want(t, "the receives", [2]uint64{wcs[0].ID, wcs[1].ID}, [2]uint64{1, 2})
	want(t, "when none sleeps", found(3), true)
}

// TestLastWQE: in the guise of iWARP a program hears at once that a QP takes no more of its Shared Receive Queue: the
// QP's state may follow a moment later, and nothing would be told with that.
func TestLastWQE(t *testing.T) {
	a := newProgram(t).queue()
	a.d.dispatch(iwarp.Event{Kind: iwarp.EventLastWQE, QP: a.inner().qp})
	e, errno := a.d.NextAsync(a.context)
	must(t, errno)
	want(t, "event", e, AsyncEvent{asyncLastWQE, 78})
}
