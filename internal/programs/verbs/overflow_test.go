//go:build linux && (amd64 || arm64)

package verbs

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/emulation"
)

// polledAll are the IDs of all completions that a CQ gives, in order.
func (q *queue) polledAll() (ids []uint64) {
	q.t.Helper()
	for wcs := make([]WC, 3); ; {
		n := q.d.Poll(q.cq, wcs)
		if n <= 0 {
			return ids
		}
		for _, wc := range wcs[:n] {
			ids = append(ids, wc.ID)
		}
	}
}

// overflows wants the one event that a CQ has overflowed, and what it had room for before that: completions of package
// iwarp, and others.
func (q *queue) overflows(ids ...uint64) {
	q.t.Helper()
	wait(q.t, q.async)
	e, errno := q.d.NextAsync(q.context)
	must(q.t, errno)
	want(q.t, "event", e, AsyncEvent{asyncCQError, 77})
	if got := q.polledAll(); !slices.Equal(got, ids) {
		q.t.Errorf("completions %v, want %v", got, ids)
	}
}

// unpolled has a QP carry out as many Sends as that, with IDs from 0 on, and go to ERR with their completions in the
// CQ.
func unpolled(t *testing.T, sends, depth int) (a *queue, r *region) {
	t.Helper()
	a, b := met(t)
	got := b.region("....", accessLocalWrite)
	r = a.region("text", 0)
	must(t, a.d.ResizeCQ(a.cq, depth))
	for id := range uint64(sends) {
		b.recv(id, got)
		a.send(id, wrSend, r, nil)
	}
	until(t, "the completions", func() bool { return emulation.Waiting(a.inner().sendCQ.cq) == sends })
	must(t, a.d.ModifyQP(a.qp, StateErr))
	return a, r
}

// TestOverflowBeside: completions of requests that are flushed have what room others leave them in the CQ, and no more.
func TestOverflowBeside(t *testing.T) {
	a, r := unpolled(t, 3, 4)
	a.send(10, wrSend, r, nil)
	a.send(11, wrSend, r, nil)
	a.overflows(0, 1, 2, 10)
	a.send(12, wrSend, r, nil)
	until(t, "the Send to be flushed", func() bool { return a.inner().lateSends.Load() == 0 })
	want(t, "completions after that", len(a.polledAll()), 0)
}

// TestOverflowUnder: completions of package iwarp that come later may take the room from those that were there, which
// is noticed with the next poll.
func TestOverflowUnder(t *testing.T) {
	a, _ := unpolled(t, 3, 6)
	c := a.inner().sendCQ
	for id := range uint64(3) {
		want(t, "room", c.add(added{WC: WC{ID: 20 + id}}, true), true)
	}
	want(t, "room for one more", c.room(), 0)
	must(t, errnoOf(c.cq.Resize(4)))
	want(t, "polled", len(a.polledAll()), 4)
	a.overflows()
}

// TestResizeBelow: no completion is lost in a CQ that gets smaller.
func TestResizeBelow(t *testing.T) {
	a, r := unpolled(t, 3, 8)
	a.send(10, wrSend, r, nil)
	c := a.inner().sendCQ
	until(t, "the flushed Send", func() bool {
		c.polling.Lock()
		defer c.polling.Unlock()
		return c.room() == 4
	})
	if a.d.ResizeCQ(a.cq, 3) == fine {
		t.Error("four completions have room for three")
	}
	must(t, a.d.ResizeCQ(a.cq, 4))
	if got := a.polledAll(); !slices.Equal(got, []uint64{0, 1, 2, 10}) {
		t.Errorf("completions %v", got)
	}
}
