package iwarp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A CQ is a Completion Queue. It collects the completions of any number of QPs, in
// order for each of their queues. Its methods may be called by any goroutine.
//
// It is the consumer's duty that completions find room. A request keeps its place
// in its queue until its completion is polled, so that a CQ as deep as Committed
// says cannot overflow. One that does loses its QPs, which go to Error, and no
// others (RFC 5042, section 6.4.6).
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
	only     *QP         // the one in qps, if there is just one
	empty    bool        // the last Poll found nothing

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
		return nil, &OpError{Op: "create CQ", Err: fmt.Errorf("%w: depth %d", ErrInvalid, depth)}
	}
	cq := &CQ{
		rnic: r, ring: make([]WC, depth), qps: make(map[*QP]int),
		gate: make(chan struct{}, 1), events: make(chan struct{}, 1),
	}
	if err := r.ledger.take(cq.shares()...); err != nil {
		return nil, &OpError{Op: "create CQ", Err: err}
	}
	return cq, nil
}

func (cq *CQ) shares() []share { return []share{{resCQ, 1}, {resCQEntry, len(cq.ring)}} }

// Depth returns how many completions the CQ has room for.
func (cq *CQ) Depth() int { return len(cq.ring) }

// Committed returns how many completions the queues tied to the CQ can have
// outstanding: the sum of their depths, a Shared Receive Queue counted once. A
// CQ of that depth cannot overflow. [Z24]
func (cq *CQ) Committed() (n int) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	srqs := make(map[*SRQ]struct{})
	for qp := range cq.qps {
		if qp.sendCQ == cq {
			n += qp.cfg.SendDepth
		}
		switch srq := qp.cfg.SRQ; {
		case qp.recvCQ != cq:
		case srq == nil:
			n += qp.cfg.RecvDepth
		default:
			srqs[srq] = struct{}{}
		}
	}
	for srq := range srqs {
		n += len(srq.slots)
	}
	return n
}

// Poll moves completions to wc, the oldest first, and returns how many. It
// does not wait and does not allocate. Called again and again on an empty CQ of a
// single QP, it also receives for that QP: who polls busily has the shortest
// latency.
func (cq *CQ) Poll(wc []WC) int {
	n, drive := cq.take(wc)
	if drive != nil {
		drive.tryReceive()
		n, _ = cq.take(wc)
	}
	return n
}

// take is Poll without receiving; drive is the QP that the poller should
// receive for.
func (cq *CQ) take(wc []WC) (n int, drive *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n = min(len(wc), cq.n)
	for i := range n {
		e := &cq.ring[cq.head]
		wc[i], *e = *e, WC{}
		wc[i].QP.polled(wc[i].Op)
		if cq.head++; cq.head == len(cq.ring) {
			cq.head = 0
		}
	}
	cq.n -= n
	// The first Poll in vain may just be the end of draining the CQ.
	if n == 0 && cq.empty {
		drive = cq.only
	}
	cq.empty = n == 0
	return n, drive
}

// Wait returns when there is a completion to poll. Its error is the context's;
// ErrClosed or ErrCQOverflow if no completion is left and none will come.
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
	case cq.overflow:
		cq.passOn()
		return false, ErrCQOverflow
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
	if cq.closed || cq.overflow || cq.n == len(cq.ring) {
		cq.dropped(wc)
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

// dropped gives up the CQ and its QPs over a completion that finds no room. A
// QP's lock may be held by who pushed, so that the QPs are failed by a goroutine of
// its own.
func (cq *CQ) dropped(wc *WC) {
	wc.QP.polled(wc.Op)
	if cq.overflow || cq.closed {
		return
	}
	cq.overflow = true
	cq.passOn()
	cq.rnic.event(Event{Kind: EventCQOverflow, CQ: cq, Err: ErrCQOverflow})
	victims := slices.Collect(maps.Keys(cq.qps))
	go func() {
		for _, qp := range victims {
			_ = qp.abort(ErrCQOverflow)
		}
	}()
}

// Close ends the CQ; who waits is woken. It is refused while a QP uses it.
// Completions that are there can still be polled.
func (cq *CQ) Close() error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if len(cq.qps) > 0 {
		return &OpError{Op: "close CQ", Err: fmt.Errorf("%w: %d QPs use it", ErrBadState, len(cq.qps))}
	}
	if !cq.closed {
		cq.closed = true
		cq.rnic.ledger.give(cq.shares()...)
	}
	cq.passOn()
	return nil
}

// attach ties a queue of a QP to the CQ. Only the owner of both can: they are of
// one RNIC.
func (cq *CQ) attach(qp *QP) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.rnic != qp.rnic:
		return fmt.Errorf("%w: CQ of another RNIC", ErrInvalid)
	case cq.closed:
		return fmt.Errorf("the CQ: %w", ErrClosed)
	case cq.overflow:
		return ErrCQOverflow
	}
	cq.qps[qp]++
	cq.findOnly()
	return nil
}

// findOnly settles which QP a poller receives for.
func (cq *CQ) findOnly() {
	cq.only = nil
	if len(cq.qps) == 1 {
		for qp := range cq.qps {
			cq.only = qp
		}
	}
}

func (cq *CQ) detach(qp *QP) {
	cq.mu.Lock()
	if cq.qps[qp]--; cq.qps[qp] <= 0 {
		delete(cq.qps, qp)
	}
	cq.findOnly()
	cq.mu.Unlock()
}
