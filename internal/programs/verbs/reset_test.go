//go:build linux && (amd64 || arm64)

package verbs

import (
	"testing"

	"github.com/goiwarp/iwarp"
)

// again leads a queue to INIT over RESET.
func (q *queue) again() {
	q.t.Helper()
	must(q.t, q.d.ModifyQP(q.qp, StateReset))
	must(q.t, q.d.ModifyQP(q.qp, StateInit))
}

// TestResetSleepers: RESET drops the receives that sleep, those too that were posted after the end. The end of the next
// connection flushes its own.
func TestResetSleepers(t *testing.T) {
	a, leaves, next := roce(t), roce(t), roce(t)
	a.meet(leaves.number)
	leaves.meet(a.number)
	exchange(t, a, leaves)
	none := a.region("none", accessLocalWrite)
	a.recv(10, none)
	must(t, leaves.d.DestroyQP(leaves.qp))
	<-a.inner().qp.Done()
	a.recv(11, none)
	var wc [1]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
	a.again()
	a.meet(next.number)
	next.meet(a.number)
	exchange(t, a, next)
	a.recv(20, none)
	must(t, a.d.ModifyQP(a.qp, StateErr))
	a.recv(21, none)
	want(t, "the receive", a.completion().ID, 20)
	want(t, "the one after the end", a.completion().ID, 21)
}

// TestErrWithoutConnection: ERR flushes what is posted there, also of a QP that has had no connection, in either guise.
func TestErrWithoutConnection(t *testing.T) {
	for _, cfg := range []Config{{}, {RoCE: true}} {
		a := newProgramWith(t, cfg).queue()
		r := a.region("text", accessLocalWrite)
		must(t, a.d.ModifyQP(a.qp, StateErr))
		a.send(1, wrSend, r, nil)
		a.recv(2, r)
		for id := range uint64(2) {
			wc := a.completion()
			want(t, "whose", wc.ID, id+1)
			want(t, "status", wc.Status, statusOf(iwarp.StatusFlushed))
		}
	}
}

// TestResetEmpties: after RESET both queues of a QP are empty, whatever it held before whose completions nobody has
// polled: the end of the next connection takes as much again.
func TestResetEmpties(t *testing.T) {
	a, b := met(t)
	next := roce(t)
	r := a.region("text", accessLocalWrite)
	fill := func() {
		must(t, a.d.ModifyQP(a.qp, StateErr))
		for id := range uint64(16) {
			a.send(id, wrSend, r, nil)
			a.recv(100+id, r)
		}
	}
	exchange(t, a, b)
	fill()
	a.again()
	a.meet(next.number)
	next.meet(a.number)
	exchange(t, a, next)
	fill()
	for range 32 {
		want(t, "status", a.completion().Status, 5)
	}
}

// TestResetLastWQE: of each connection a program hears that the QP takes no more of its Shared Receive Queue, also
// after RESET.
func TestResetLastWQE(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 8, 1, 5)
	must(t, errno)
	a := p.queueOf(srq)
	for range 2 {
		b := roce(t)
		a.meet(b.number)
		b.meet(a.number)
		b.recv(1, b.region("....", accessLocalWrite))
		a.send(2, wrSend, a.region("text", 0), nil)
		a.completion()
		must(t, a.d.ModifyQP(a.qp, StateErr))
		until(t, "the event", func() bool { return readable(t, p.async) })
		want(t, "event", p.asyncEvent(), AsyncEvent{asyncLastWQE, 78})
		a.again()
	}
}
