package iwarp

import (
	"context"
	"fmt"
	"sync"
)

// EventKind tells what an Event is about.
type EventKind uint8

const (
	// EventTerminateReceived: the peer ended the connection; Err is a *TerminateError.
	EventTerminateReceived EventKind = iota + 1
	// EventTerminateSent: we found an error and told the peer; Err is a *TerminateError.
	EventTerminateSent
	// EventConnectionLost: the connection ended without an orderly close.
	EventConnectionLost
	// EventBadClose: octets came, or work was under way, while it was being closed.
	EventBadClose
	// EventHalfClosed: the peer has closed its half.
	EventHalfClosed
	// EventCloseComplete: an orderly close is over.
	EventCloseComplete
	// EventCQOverflow: a CQ had no room; its QPs are lost.
	EventCQOverflow
	// EventSRQLimit: a Shared Receive Queue holds less than its limit.
	EventSRQLimit
)

var eventNames = [...]string{
	EventTerminateReceived: "Terminate received", EventTerminateSent: "Terminate sent",
	EventConnectionLost: "connection lost", EventBadClose: "bad close", EventHalfClosed: "peer closed its half",
	EventCloseComplete: "close complete", EventCQOverflow: "CQ overflow", EventSRQLimit: "SRQ limit reached",
}

// String names the kind.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && k > 0 {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// An Event is asynchronous: it belongs to no single work request.
type Event struct {
	Kind EventKind
	QP   *QP
	CQ   *CQ
	SRQ  *SRQ
	Err  error
}

// String says what happened, and to whom.
func (e Event) String() string {
	s := e.Kind.String()
	if e.QP != nil {
		s += fmt.Sprintf(" on QP %d", e.QP.Num())
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// eventQueue keeps the newest events, up to its depth.
type eventQueue struct {
	mu      sync.Mutex
	ring    []Event
	depth   int
	dropped uint64
	closed  bool
	gate    chan struct{}
}

const defaultEventDepth = 1024

func (q *eventQueue) init(depth int) {
	if depth <= 0 {
		depth = defaultEventDepth
	}
	q.depth, q.gate = depth, make(chan struct{}, 1)
}

func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ring) == q.depth {
		copy(q.ring, q.ring[1:])
		q.ring = q.ring[:q.depth-1]
		q.dropped++
	}
	q.ring = append(q.ring, e)
	wake(q.gate)
}

func (q *eventQueue) next(ctx context.Context) (Event, error) {
	for {
		e, ok, err := q.take()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-q.gate:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// take removes the oldest event, and wakes the next waiter if more is there.
func (q *eventQueue) take() (e Event, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ring) == 0 {
		if q.closed {
			wake(q.gate)
			return e, false, ErrClosed
		}
		return e, false, nil
	}
	e = q.ring[0]
	copy(q.ring, q.ring[1:])
	q.ring[len(q.ring)-1] = Event{}
	q.ring = q.ring[:len(q.ring)-1]
	if len(q.ring) > 0 || q.closed {
		wake(q.gate)
	}
	return e, true, nil
}

func (q *eventQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	wake(q.gate)
}
