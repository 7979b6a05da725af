//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// beside returns another queue of the program's with the same CQ.
func (q *queue) beside() *queue {
	q.t.Helper()
	other := *q
	var errno syscall.Errno
	other.qp, other.number, errno = q.d.CreateQP(QPAttr{
		Context: q.context, PD: q.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 16, RecvDepth: 16, MaxInline: 64, SignalAll: true, Token: 79,
	})
	must(q.t, errno)
	must(q.t, q.d.ModifyQP(other.qp, StateInit))
	return &other
}

// TestPollPastSleepers: receives that sleep, as the program is not to know yet that the peer has gone, do not hide a completion after them, of
// which there is no event any more. "If the return value is ... strictly less than num_entries, then the CQ was emptied" (ibv_poll_cq(3)).
func TestPollPastSleepers(t *testing.T) {
	a, leaves, stays := roce(t), roce(t), roce(t)
	b := a.beside()
	a.meet(leaves.number)
	leaves.meet(a.number)
	b.meet(stays.number)
	stays.meet(b.number)
	exchange(t, a, leaves)
	exchange(t, b, stays)
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
