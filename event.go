package iwarp

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"sync"
	"weak"

	"github.com/goiwarp/iwarp/internal/engine"
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
	// EventLastWQE: the connection of a QP with a Shared Receive Queue has ended, and its
	// completions are in the CQs. The QP takes no more receives from the queue.
	EventLastWQE
)

var eventNames = [...]string{
	EventTerminateReceived: "Terminate received", EventTerminateSent: "Terminate sent",
	EventConnectionLost: "connection lost", EventBadClose: "bad close", EventHalfClosed: "peer closed its half",
	EventCloseComplete: "close complete", EventCQOverflow: "CQ overflow", EventSRQLimit: "SRQ limit reached",
	EventLastWQE: "last WQE reached",
}

// String names the kind.
func (k EventKind) String() string {
	return nameOf(k, "event", eventNames[:]...)
}

// An Event is asynchronous: it belongs to no single work request.
type Event struct {
	Kind EventKind
	// QP, CQ and SRQ are what the event is about; those it is not about are nil. An event
	// that nobody has fetched does not keep them alive: each is nil if the program has
	// closed it and has no reference to it any more.
	QP  *QP
	CQ  *CQ
	SRQ *SRQ
	// QPNum is the QP's number, and RemoteAddr the address of its peer: they are there even
	// if QP is nil.
	QPNum      uint32
	RemoteAddr net.Addr
	Err        error
	// Count is how many events this one stands for: events of the same kind about the same
	// object are kept as one, the last, until it is fetched.
	Count int
}

// String says what happened, and to whom.
func (e Event) String() string {
	s := e.Kind.String()
	if e.QPNum != 0 {
		s += fmt.Sprintf(" on QP %d", e.QPNum)
	}
	if e.RemoteAddr != nil {
		s += " with " + e.RemoteAddr.String()
	}
	if e.Count > 1 {
		s += fmt.Sprintf(", %d times", e.Count)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// A subject is what an event is about, which does not live on because of that.
type subject struct {
	kind EventKind
	num  uint32
	qp   weak.Pointer[QP]
	cq   weak.Pointer[CQ]
	srq  weak.Pointer[SRQ]
}

func subjectOf(e *Event) subject {
	return subject{e.Kind, e.QPNum, weak.Make(e.QP), weak.Make(e.CQ), weak.Make(e.SRQ)}
}

// key is the same for events that can be one.
func (s subject) key() subject {
	if s.kind == EventSRQLimit { // whichever QP took the receive too many
		return subject{kind: s.kind, srq: s.srq}
	}
	return s
}

// ofConnection tells events of single connections, of which peers make as many as they
// like, from those about what connections share.
func (s *subject) ofConnection() bool {
	return s.kind != EventCQOverflow && s.kind != EventSRQLimit
}

// A queued event is one that nobody has fetched: without pointers to its subject.
type queued struct {
	subject
	Event
	turn uint64 // counts events up
}

// eventQueue keeps the newest events about connections, up to its depth, and all others,
// of which there is one for each object and kind. What it does for an event takes no longer
// if there are many, as they are when nobody fetches them.
type eventQueue struct {
	mu      sync.Mutex
	noise   list.List // of *queued, the oldest first: those about connections
	rest    list.List // and all others
	found   map[subject]*list.Element
	turns   uint64
	depth   int // the most in noise
	dropped uint64
	closed  bool
	gate    chan struct{}
}

const defaultEventDepth = 1024

func (q *eventQueue) init(depth int) {
	if depth <= 0 {
		depth = defaultEventDepth
	}
	q.depth, q.gate, q.found = depth, make(chan struct{}, 1), make(map[subject]*list.Element)
}

func (q *eventQueue) push(e Event) {
	if e.QP != nil {
		e.QPNum = e.QP.num
	}
	of := subjectOf(&e)
	e.QP, e.CQ, e.SRQ, e.Count = nil, nil, nil, 1
	q.mu.Lock()
	defer q.mu.Unlock()
	if same := q.found[of.key()]; same != nil {
		e.Count += q.remove(same).Count
	}
	q.turns++
	n := &queued{of, e, q.turns}
	l := &q.rest
	if of.ofConnection() {
		l = q.room()
	}
	q.found[of.key()] = l.PushBack(n)
	wake(q.gate)
}

// room returns the list of events about connections when it has room for one.
func (q *eventQueue) room() *list.List {
	if q.noise.Len() == q.depth {
		q.remove(q.noise.Front())
		q.dropped++
	}
	return &q.noise
}

// remove takes an event out. The caller holds mu.
func (q *eventQueue) remove(e *list.Element) *queued {
	n := e.Value.(*queued)
	delete(q.found, n.key())
	if n.ofConnection() {
		q.noise.Remove(e)
	} else {
		q.rest.Remove(e)
	}
	return n
}

// oldest returns the event that was queued first, nil if there is none.
func (q *eventQueue) oldest() *list.Element {
	a, b := q.noise.Front(), q.rest.Front()
	if a == nil || b != nil && b.Value.(*queued).turn < a.Value.(*queued).turn {
		return b
	}
	return a
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
	oldest := q.oldest()
	if oldest == nil {
		if q.closed {
			wake(q.gate)
			return e, false, &OpError{Op: "next event", Err: errRNICClosed}
		}
		return e, false, nil
	}
	first := q.remove(oldest)
	if len(q.found) > 0 || q.closed {
		wake(q.gate)
	}
	e = first.Event
	e.QP, e.CQ, e.SRQ = first.qp.Value(), first.cq.Value(), first.srq.Value()
	return e, true, nil
}

func (q *eventQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	wake(q.gate)
}

// event tells the RNIC's consumer of something about the connection. The caller holds
// qp.mu.
func (qp *QP) event(kind EventKind, err error) {
	qp.rnic.event(Event{Kind: kind, QP: qp, Err: err, RemoteAddr: qp.ends.remote})
}

// lastWQE tells a consumer with a Shared Receive Queue that the QP has left RTS for good.
// The caller holds qp.mu.
func (qp *QP) lastWQE(n *engine.Notice) {
	if qp.cfg.SRQ != nil && n.Kind == engine.NoticeState && (n.To == engine.Error || n.To == engine.Idle) {
		qp.event(EventLastWQE, nil)
	}
}
