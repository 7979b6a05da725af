package iwarp

import (
	"context"
	"fmt"
	"sync"
)

// A CQ is a Completion Queue. It collects the completions of any number of QPs, in
// order for each of their queues. Its methods may be called by any goroutine.
//
// It is the consumer's duty that completions find room: a CQ that overflows
// loses its QPs, which go to Error, and no others (RFC 5042, section 6.4.6).
type CQ struct {
	rnic *RNIC

	mu       sync.Mutex
	ring     []WC
	head, n  int
	arm      armState
	waiters  int
	overflow bool
	closed   bool
	qps      map[*QP]int // how often a QP uses the CQ: as its one or both queues'

	gate   chan struct{} // a token wakes one of Wait
	events chan struct{}
}

type armState uint8

const (
	armedNot armState = iota
	armedSolicited
	armedNext
)

// MaxCQDepth bounds the depth of a CQ.
const MaxCQDepth = 1 << 22

// CreateCQ returns a CQ with room for depth completions, 1 to MaxCQDepth.
func (r *RNIC) CreateCQ(depth int) (*CQ, error) {
	if depth < 1 || depth > MaxCQDepth {
		return nil, fmt.Errorf("iwarp: create CQ: %w: depth %d", ErrInvalid, depth)
	}
	return &CQ{
		rnic: r, ring: make([]WC, depth), qps: make(map[*QP]int),
		gate: make(chan struct{}, 1), events: make(chan struct{}, 1),
	}, nil
}

// Depth returns how many completions the CQ has room for.
func (cq *CQ) Depth() int { return len(cq.ring) }

// Poll moves completions to wc, the oldest first, and returns how many. It
// does not wait and does not allocate.
func (cq *CQ) Poll(wc []WC) int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n := min(len(wc), cq.n)
	for i := range n {
		e := &cq.ring[cq.head]
		wc[i], *e = *e, WC{}
		if cq.head++; cq.head == len(cq.ring) {
			cq.head = 0
		}
	}
	cq.n -= n
	return n
}

// Wait returns when there is a completion to poll. Its error is the context's,
// or ErrClosed.
func (cq *CQ) Wait(ctx context.Context) error {
	cancel := ctx.Done()
	for {
		ready, err := cq.enter()
		if ready || err != nil {
			return err
		}
		if cancel == nil {
			<-cq.gate
			continue
		}
		select {
		case <-cq.gate:
		case <-cancel:
			cq.leave()
			return ctx.Err()
		}
	}
}

// enter registers a waiter unless there is nothing to wait for.
func (cq *CQ) enter() (ready bool, err error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.n > 0:
		cq.passOn()
		return true, nil
	case cq.closed:
		cq.passOn()
		return false, ErrClosed
	}
	cq.waiters++
	return false, nil
}

// leave takes back a waiter that gives up.
func (cq *CQ) leave() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.waiters > 0 {
		cq.waiters-- // a token that was meant for it wakes another
		return
	}
	<-cq.gate
}

// passOn wakes the next waiter, if there is one: a token is a waiter that counts
// no more.
func (cq *CQ) passOn() {
	if cq.waiters == 0 {
		return
	}
	select {
	case cq.gate <- struct{}{}:
		cq.waiters--
	default: // who takes the token that is there passes it on
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Arm asks for one notice on Events: for the next completion or, with
// solicitedOnly, for the next that the peer solicited or that is an error.
// Completions that are there already give none: poll, arm, and poll again. A
// request for the next is not weakened by a later one for solicited ones.
func (cq *CQ) Arm(solicitedOnly bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	want := armedNext
	if solicitedOnly {
		want = armedSolicited
	}
	cq.arm = max(cq.arm, want)
}

// Events returns the channel of the notices that Arm asks for.
func (cq *CQ) Events() <-chan struct{} { return cq.events }

// push adds a completion.
func (cq *CQ) push(wc *WC) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.closed {
		return
	}
	if cq.n == len(cq.ring) {
		cq.overflowed()
		return
	}
	i := cq.head + cq.n
	if i >= len(cq.ring) {
		i -= len(cq.ring)
	}
	cq.ring[i] = *wc
	cq.n++
	cq.passOn()
	cq.notify(wc)
}

func (cq *CQ) notify(wc *WC) {
	if cq.arm == armedNext || cq.arm == armedSolicited && (wc.Solicited || wc.Status != StatusSuccess) {
		cq.arm = armedNot
		wake(cq.events)
	}
}

// overflowed gives up the CQ and its QPs. A QP's lock may be held by who pushed,
// so that the QPs are failed by a goroutine of its own.
func (cq *CQ) overflowed() {
	if cq.overflow {
		return
	}
	cq.overflow = true
	cq.rnic.event(Event{Kind: EventCQOverflow, CQ: cq})
	victims := make([]*QP, 0, len(cq.qps))
	for qp := range cq.qps {
		victims = append(victims, qp)
	}
	go func() {
		for _, qp := range victims {
			qp.fail(ErrCQOverflow)
		}
	}()
}

// Close ends the CQ; who waits is woken. It is refused while a QP uses it.
func (cq *CQ) Close() error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if len(cq.qps) > 0 {
		return fmt.Errorf("iwarp: close CQ: %w: %d QPs use it", ErrBadState, len(cq.qps))
	}
	cq.closed = true
	cq.passOn()
	return nil
}

func (cq *CQ) attach(qp *QP) {
	cq.mu.Lock()
	cq.qps[qp]++
	cq.mu.Unlock()
}

func (cq *CQ) detach(qp *QP) {
	cq.mu.Lock()
	if cq.qps[qp]--; cq.qps[qp] <= 0 {
		delete(cq.qps, qp)
	}
	cq.mu.Unlock()
}
