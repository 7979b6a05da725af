package iwarp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/engine"
)

// wantEvent expects the next event at once, of a kind and a number of QP, that often.
func (q *eventQueue) wantEvent(t *testing.T, kind EventKind, num uint32, count int) {
	t.Helper()
	e, ok, err := q.pop()
	if !ok || err != nil || e.Kind != kind || e.QPNum != num || e.Count != count {
		t.Errorf("got %v of QP %d, %d times (%t, %v); want %v of QP %d, %d times",
			e.Kind, e.QPNum, e.Count, ok, err, kind, num, count)
	}
}

// TestEventQueue: equal events are one until it is fetched, which stands where the last of them came; what was fetched
// does not count any more. The order is that of both lists together.
func TestEventQueue(t *testing.T) {
	var q eventQueue
	q.init(2)
	lost := func(num uint32) { q.push(Event{Kind: EventConnectionLost, QPNum: num}) }
	lost(1)
	q.push(Event{Kind: EventSRQLimit, SRQ: &SRQ{}})
	lost(2)
	lost(1)
	q.wantEvent(t, EventSRQLimit, 0, 1)
	q.wantEvent(t, EventConnectionLost, 2, 1)
	q.wantEvent(t, EventConnectionLost, 1, 2)
	lost(1)
	q.wantEvent(t, EventConnectionLost, 1, 1)
	if _, ok, err := q.pop(); ok || err != nil {
		t.Errorf("an event more: %t, %v", ok, err)
	}
	<-q.gate // for the events that were there
	lost(3)
	<-q.gate
	q.wantEvent(t, EventConnectionLost, 3, 1)
	if len(q.gate) > 0 {
		t.Error("a waiter is woken for nothing")
	}
	for num := range uint32(5) {
		lost(num + 1)
	}
	q.wantEvent(t, EventConnectionLost, 4, 1)
	q.wantEvent(t, EventConnectionLost, 5, 1)
	if q.dropped != 3 || len(q.ofQPs)+len(q.ofAll) > 0 {
		t.Errorf("%d dropped, %d and %d found", q.dropped, len(q.ofQPs), len(q.ofAll))
	}
}

// TestEventWaiters: as many waiters go on as there are events, and all of them when the queue is closed.
func TestEventWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q eventQueue
		q.init(10)
		got := make(chan error, 10)
		waiters := func(n int) {
			for range n {
				go func() { _, err := q.next(context.Background()); got <- err }()
			}
			synctest.Wait()
		}
		want := func(what string, n int, err error) {
			t.Helper()
			synctest.Wait()
			if len(got) != n {
				t.Fatalf("%s: %d waiters went on, not %d", what, len(got), n)
			}
			for range n {
				if e := <-got; !errors.Is(e, err) {
					t.Errorf("%s: %v", what, e)
				}
			}
		}
		waiters(5)
		for num := range uint32(3) {
			q.push(Event{Kind: EventConnectionLost, QPNum: num + 1})
		}
		want("three events", 3, nil)
		q.close()
		want("closed", 2, errRNICClosed)
		q.push(Event{Kind: EventConnectionLost})
		waiters(3)
		synctest.Wait()
		close(got)
		closed := 0
		for err := range got {
			if err != nil {
				closed++
			}
		}
		if closed != 2 {
			t.Errorf("after the end: %d of 3 heard of it, and 1 has an event", closed)
		}
	})
}

// TestLastWQEOnce: of all that happens to a QP with a Shared Receive Queue, only the end of its connection is the
// event.
func TestLastWQEOnce(t *testing.T) {
	for _, c := range []struct {
		notice engine.Notice
		shared bool
		want   bool
	}{
		{engine.Notice{Kind: engine.NoticeState, From: engine.RTS, To: engine.Error}, true, true},
		{engine.Notice{Kind: engine.NoticeState, From: engine.Closing, To: engine.Idle}, true, true},
		{engine.Notice{Kind: engine.NoticeState, From: engine.Terminate, To: engine.Error}, true, true},
		{engine.Notice{Kind: engine.NoticeState, From: engine.RTS, To: engine.Error}, false, false},
		{engine.Notice{Kind: engine.NoticeState, From: engine.Idle, To: engine.Error}, true, false},
		{engine.Notice{Kind: engine.NoticeState, From: engine.Error, To: engine.Idle}, true, false},
		{engine.Notice{Kind: engine.NoticeState, To: engine.RTS}, true, false},
		{engine.Notice{Kind: engine.NoticeState, To: engine.Terminate}, true, false},
		{engine.Notice{Kind: engine.NoticeState, To: engine.Closing}, true, false},
		{engine.Notice{Kind: engine.NoticeHalfClosed}, true, false},
		{engine.Notice{Kind: engine.NoticeConnectionLost, To: engine.Error}, true, false},
	} {
		rnic := &RNIC{}
		rnic.events.init(4)
		qp := &QP{rnic: rnic}
		if c.shared {
			qp.cfg.SRQ = &SRQ{}
		}
		upcalls{qp}.lastWQE(&c.notice)
		if e, ok, _ := rnic.events.pop(); ok != c.want || ok && e.Kind != EventLastWQE {
			t.Errorf("%+v, shared %t: %v, %t", c.notice, c.shared, e.Kind, ok)
		}
	}
}

// A late context has whoever waits with it come to its wait when the test says so.
type late struct {
	context.Context
	now chan struct{}
}

func (c late) Done() <-chan struct{} { <-c.now; return nil }

// What comes while several consumers are about to wait wakes each of them, whichever list it is in.
func TestEventsBeforeWaiting(t *testing.T) {
	lost := func(n int) Event { return Event{Kind: EventConnectionLost, QPNum: uint32(n)} }
	limit := func(int) Event { return Event{Kind: EventSRQLimit, SRQ: &SRQ{}} }
	for _, events := range [][]func(int) Event{{lost, lost, lost}, {limit, limit, limit},
		{lost, limit, limit}, {lost, limit, lost}} {
		synctest.Test(t, func(t *testing.T) {
			var q eventQueue
			q.init(10)
			got := make(chan error, len(events))
			ctx := late{context.Background(), make(chan struct{})}
			for range events {
				go func() { _, err := q.next(ctx); got <- err }()
			}
			synctest.Wait() // they have found nothing
			for n, event := range events {
				q.push(event(n))
			}
			close(ctx.now)
			synctest.Wait()
			if len(got) != cap(got) {
				t.Errorf("%d of %d consumers have their event", len(got), cap(got))
			}
			q.close()
		})
	}
}
