//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// async waits for the next asynchronous event.
func (p *program) asyncEvent() AsyncEvent {
	p.t.Helper()
	wait(p.t, p.async)
	e, errno := p.d.NextAsync(p.context)
	must(p.t, errno)
	return e
}

func (q *queue) state() uint32 {
	q.t.Helper()
	state, _, _, errno := q.d.QueryQP(q.qp)
	must(q.t, errno)
	return state
}

// TestBroken: an error that is found here, which the program is told of, has the QP go to ERR, and what it has is
// flushed. "IBV_EVENT_QP_FATAL: Error occurred on a QP and it transitioned to error state" (ibv_get_async_event(3)).
// The program that made it learns of it by its request.
func TestBroken(t *testing.T) {
	a, b := met(t)
	exchange(t, a, b)
	to := b.region("none", accessLocalWrite)
	for id := range uint64(2) {
		b.recv(10+id, to)
	}
	a.send(1, wrWrite, a.region("evil", 0), to)
	want(t, "event", b.asyncEvent(), AsyncEvent{asyncQPFatal, 78})
	want(t, "state", b.state(), StateErr)
	for id := range uint64(2) {
		wc := b.completion()
		want(t, "receive", [2]uint64{wc.ID, uint64(wc.Status)}, [2]uint64{10 + id, 5})
	}
	b.recv(12, to)
	want(t, "a receive after that", b.completion().ID, 12)
	want(t, "the Write failed", a.completion().Status != 0, true)
	want(t, "its QP's state", a.state(), StateErr)
	want(t, "an event about the peer's end", readable(t, a.async), false)
}

// TestBrokenByOverflow: a CQ without room has the QP go to ERR.
func TestBrokenByOverflow(t *testing.T) {
	a, b := met(t)
	must(t, b.d.ResizeCQ(b.cq, 1))
	to := b.region("....", accessLocalWrite)
	for id := range uint64(3) {
		b.recv(id, to)
	}
	from := a.region("text", 0)
	for id := range uint64(2) {
		a.send(id, wrSend, from, nil)
	}
	got := map[AsyncEvent]bool{b.asyncEvent(): true, b.asyncEvent(): true}
	want(t, "the CQ's event", got[AsyncEvent{asyncCQError, 77}], true)
	want(t, "the QP's event", got[AsyncEvent{asyncQPFatal, 78}], true)
	want(t, "state", b.state(), StateErr)
}

// TestBrokenBefore: an error of a connection that the program has left behind is none of the next.
func TestBrokenBefore(t *testing.T) {
	a, b := met(t)
	c := roce(t)
	exchange(t, a, b)
	before := b.inner().qp
	must(t, b.d.ModifyQP(b.qp, StateReset))
	must(t, b.d.ModifyQP(b.qp, StateInit))
	b.meet(c.number)
	want(t, "that it breaks the next", b.inner().broken(before), false)
	c.meet(b.number)
	exchange(t, b, c)
	want(t, "that it breaks the next", b.inner().broken(before), false)
	want(t, "that another's does", b.inner().broken(a.inner().qp), false)
	want(t, "state", b.state(), StateRTS)
}

// TestEstablished: what comes to a QP in RTR is an event, once, at the end that was called and at the one that calls.
// "IBV_EVENT_COMM_EST: Communication was established on a QP" (ibv_get_async_event(3)).
func TestEstablished(t *testing.T) {
	for _, called := range []bool{true, false} {
		a, b := byNumber(roce(t), roce(t))
		if !called {
			a, b = b, a
		}
		must(t, b.d.Meet(b.qp, b.path(a.number)))
		a.meet(b.number)
		for id := range uint64(2) {
			b.recv(id, b.region("....", accessLocalWrite))
			a.send(id, wrSend, a.region("text", 0), nil)
			want(t, "receive in RTR", b.completion().Status, 0)
			a.completion()
		}
		want(t, "event", b.asyncEvent(), AsyncEvent{asyncCommEst, 78})
		must(t, b.d.ModifyQP(b.qp, StateRTS))
		exchange(t, a, b)
		want(t, "another event", readable(t, b.async), false)
	}
}

// TestUnfetchedAsync: the same event waits once, however often there is reason for it.
func TestUnfetchedAsync(t *testing.T) {
	a := roce(t)
	for range 3 {
		a.inner().raise(asyncQPFatal)
		a.inner().raise(asyncCommEst)
	}
	want(t, "event", a.asyncEvent(), AsyncEvent{asyncQPFatal, 78})
	want(t, "event", a.asyncEvent(), AsyncEvent{asyncCommEst, 78})
	want(t, "another", readable(t, a.async), false)
}
