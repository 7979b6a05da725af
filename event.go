package iwarp

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/wording"
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
	// EventBadClose: bytes came while the connection was being closed, or work was unfinished.
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
	// EventEstablished: a Responder has the Initiator's first FPDU, and so sends what is posted.
	EventEstablished
	// EventQPFatal: an error that was found here, and that no other event reports, has put the QP into StateError: a CQ
	// overflow, a timeout. Err has the error. The QP is flushing its work, and may still do so after the event. There is
	// no such event when the program itself ends the connection, by Abort or Modify.
	EventQPFatal
)

var eventNames = [...]string{
	EventTerminateReceived: "Terminate received", EventTerminateSent: "Terminate sent",
	EventConnectionLost: "connection lost", EventBadClose: "bad close", EventHalfClosed: "peer closed its half",
	EventCloseComplete: "close complete", EventCQOverflow: "CQ overflow", EventSRQLimit: "SRQ limit reached",
	EventLastWQE: "last WQE reached", EventEstablished: "communication established", EventQPFatal: "QP in error",
}

// String names the kind.
func (k EventKind) String() string {
	return wording.Name(k, "event", eventNames[:])
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
	if e.CQ != nil {
		s += " of " + e.CQ.String()
	}
	if e.RemoteAddr != nil {
		s += " with " + e.RemoteAddr.String()
	}
	if e.Count > 1 {
		s += fmt.Sprintf(", %d times", e.Count)
	}
	switch {
	case e.Kind == EventCQOverflow: // which Err says again
		s += ": " + overflowAdvice
	case e.Err != nil:
		s += ": " + e.Err.Error()
	}
	return s
}

// A queued event is one that nobody has fetched: what it is about does not live on because of that.
type queued struct {
	Event // without QP, CQ and SRQ
	qp    weak.Pointer[QP]
	of    sharedSubject
	turn  uint64 // counts events up
}

// A sharedSubject is what an event is about that is not about a connection.
type sharedSubject struct {
	cq  weak.Pointer[CQ]
	srq weak.Pointer[SRQ]
}

// ofConnection tells events of single connections, of which peers make as many as they
// like, from those about what connections share.
func (e *Event) ofConnection() bool {
	return e.Kind != EventCQOverflow && e.Kind != EventSRQLimit
}

// ofQP is the same for events of connections that can be one.
func (e *Event) ofQP() uint64 { return uint64(e.Kind)<<32 | uint64(e.QPNum) }

// eventQueue keeps the newest events about connections, up to its depth, and all others,
// of which there is one for each object and kind. What it does for an event takes no longer
// if there are many, as they are when nobody fetches them.
type eventQueue struct {
	fetched atomic.Bool // by NextEvent, or it waits for one

	mu      sync.Mutex
	noise   list.List                       // of *queued, the oldest first: those about connections
	rest    list.List                       // and all others
	ofQPs   map[uint64]*list.Element        // those in noise
	ofAll   map[sharedSubject]*list.Element // those in rest
	turns   uint64
	depth   int // the most in noise
	dropped uint64
	closed  bool
	spare   *queued // memory of one that nobody fetched
	gate    chan struct{}
}

const defaultEventDepth = 1024

func (q *eventQueue) init(depth int) {
	if depth <= 0 {
		depth = defaultEventDepth
	}
	q.depth, q.gate = depth, make(chan struct{}, 1)
	q.ofQPs, q.ofAll = make(map[uint64]*list.Element), make(map[sharedSubject]*list.Element)
}

func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.spare
	if n == nil {
		n = new(queued)
	}
	q.turns++
	n.Event, n.turn, q.spare = e, q.turns, nil
	if e.QP != nil {
		n.QPNum, n.qp = e.QP.num, weak.Make(e.QP)
	}
	n.QP, n.CQ, n.SRQ, n.Count = nil, nil, nil, 1
	if e.ofConnection() {
		q.pushOfQP(n)
	} else {
		n.of = sharedSubject{weak.Make(e.CQ), weak.Make(e.SRQ)} // whichever QP was the last straw
		q.pushOfAll(n)
	}
	wake(q.gate)
}

func (q *eventQueue) pushOfQP(n *queued) {
	key := n.ofQP()
	if same := q.ofQPs[key]; same != nil {
		n.Count += same.Value.(*queued).Count
		same.Value = n
		q.noise.MoveToBack(same)
		return
	}
	if q.noise.Len() < q.depth {
		q.ofQPs[key] = q.noise.PushBack(n)
		return
	}
	q.ofQPs[key] = q.replaceOldest(n)
	q.dropped++
}

// replaceOldest has an event about a connection take the place of the oldest, and keeps the memory of that for the
// next: where nobody fetches events, one comes for each.
func (q *eventQueue) replaceOldest(n *queued) *list.Element {
	e := q.noise.Front()
	old := e.Value.(*queued)
	delete(q.ofQPs, old.ofQP())
	*old, q.spare = queued{}, old
	e.Value = n
	q.noise.MoveToBack(e)
	return e
}

func (q *eventQueue) pushOfAll(n *queued) {
	if same := q.ofAll[n.of]; same != nil {
		n.Count += q.remove(same).Count
	}
	q.ofAll[n.of] = q.rest.PushBack(n)
}

// remove takes an event out. The caller holds mu.
func (q *eventQueue) remove(e *list.Element) *queued {
	n := e.Value.(*queued)
	if n.ofConnection() {
		delete(q.ofQPs, n.ofQP())
		q.noise.Remove(e)
	} else {
		delete(q.ofAll, n.of)
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

// eventFailed is the error of a NextEvent.
func eventFailed(err error) error { return &OpError{Op: "next event", Err: err} }

// unwatched reports whether nobody has asked for events up to now.
func (q *eventQueue) unwatched() bool { return !q.fetched.Load() }

func (q *eventQueue) next(ctx context.Context) (Event, error) {
	if ctx == nil {
		return Event{}, eventFailed(errNoContext)
	}
	q.fetched.Store(true)
	for {
		e, ok, err := q.pop()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-q.gate:
		case <-ctx.Done():
			return Event{}, eventFailed(deadline.ContextError(ctx))
		}
	}
}

// pop removes the oldest event, and wakes the next waiter if more is there.
func (q *eventQueue) pop() (e Event, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.oldest()
	if oldest == nil {
		if q.closed {
			wake(q.gate)
			return e, false, eventFailed(errRNICClosed)
		}
		return e, false, nil
	}
	first := q.remove(oldest)
	if q.noise.Len()+q.rest.Len() > 0 || q.closed {
		wake(q.gate)
	}
	e = first.Event
	e.QP, e.CQ, e.SRQ = first.qp.Value(), first.of.cq.Value(), first.of.srq.Value()
	return e, true, nil
}

func (q *eventQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	wake(q.gate)
}
