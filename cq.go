package iwarp

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A CQ is a Completion Queue. It collects the completions of any number of QPs, in
// order for each of their queues. Its methods may be called by any goroutine.
//
// The consumer must see to it that completions find room. In a CQ as deep as Committed says
// they always do, since a request keeps its entry in its queue until its completion is polled.
// If a CQ does overflow, its QPs go to StateError, and no others (RFC 5042, section 6.4.6).
type CQ struct {
	rnic *RNIC

	mu       sync.Mutex
	ring     ring.Ring[WC]
	waiters  int
	uses     *cqUse       // the QPs that use it, as a list
	used     int          // how many they are
	ended    int          // QPs whose connection has ended
	only     *QP          // the one that uses it, if there is just one
	leader   *driver.Conn // that one of Wait receives on; nil: none does
	arm      armState
	overflow bool
	closed   bool
	had      bool // there was a QP
	auto     bool // it was made for a QP, and ends with it
	empty    bool // the last Poll found nothing
	reclaim  reclaim.Entry

	gate   chan struct{} // a token wakes one of Wait; nil until one waits
	events chan struct{} // nil until it is wanted
}

// A cqUse is what a QP has to do with a CQ. It lies in the QP, so that it takes no look-up and no memory of its own.
type cqUse struct {
	qp         *QP
	prev, next *cqUse // in the CQ's list
	queues     uint8  // whose completions go there: one or two; none: the QP does not use it
	ended      bool   // its connection has ended
}

type armState uint8

const (
	armedNot armState = iota
	armedSolicited
	armedNext
)

// maxCQDepth bounds the depth of a CQ.
const maxCQDepth = 1 << 22

// CreateCQ returns a CQ with room for depth completions, 1 to RNICAttr.MaxCQDepth.
func (r *RNIC) CreateCQ(depth int) (*CQ, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if depth < 1 || depth > maxCQDepth {
		err := fmt.Errorf("%w: a depth of %d, which must be 1 to %d", ErrInvalid, depth, maxCQDepth)
		return nil, &OpError{Op: "create CQ", Err: err}
	}
	if err := r.checkOpen(); err != nil {
		return nil, &OpError{Op: "create CQ", Err: err}
	}
	cq := &CQ{rnic: r, ring: ring.New[WC](depth)}
	if err := r.ledger.reserve(cq.shares()...); err != nil {
		return nil, &OpError{Op: "create CQ", Err: err}
	}
	return cq, nil
}

func (cq *CQ) shares() []share { return []share{{resCQ, 1}, {resCQEntry, cq.ring.Limit()}} }

// Depth returns how many completions the CQ has room for.
func (cq *CQ) Depth() int {
	if cq.made() != nil {
		return 0
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.ring.Limit()
}

// Committed returns how many completions the queues tied to the CQ can have outstanding: the sum of their depths, a
// Shared Receive Queue counted once. A CQ of that depth cannot overflow, whatever peers do, with one exception: when a
// connection ends, the places of its receives in a Shared Receive Queue come back at once, polled or not. To exclude
// that, post a receive only after you have polled a completion.
func (cq *CQ) Committed() (n int) {
	if cq.made() != nil {
		return 0
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	srqs := make(map[*SRQ]struct{})
	for qp := range cq.qps() {
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
		n += srq.depth()
	}
	return n
}

// Poll moves completions to wc, the oldest first, and returns how many. Ask each for its error (WC.Err). Poll
// does not wait and does not allocate. Called again and again on an empty CQ of a
// single QP, it also receives for that QP: a program that polls without waiting
// has the shortest latency. After hundreds of such calls what arrives wakes no other thread
// (Linux). When such a program stops polling, what the peer does by itself then, such as a Read of
// this end's memory, may be noticed up to 4 ms later, once. Arm and Wait spare that.
func (cq *CQ) Poll(wc []WC) int {
	if cq.made() != nil {
		return 0
	}
	n, vain, only := cq.pollQueued(wc)
	if !vain {
		return n
	}
	if only == nil {
		runtime.Gosched() // whoever receives or sends for the QPs may need this processor
	} else if c := only.conn.Load(); c == nil || !c.Poll() {
		return 0
	}
	n, _, _ = cq.pollQueued(wc)
	return n
}

// pollQueued is Poll without receiving. It tells whether that was in vain again, and which is the
// CQ's only QP.
func (cq *CQ) pollQueued(wc []WC) (n int, vain bool, only *QP) {
	cq.mu.Lock()
	if n = min(len(wc), cq.ring.Len()); n == 0 {
		// The first Poll in vain may just be the end of draining the CQ.
		vain, cq.empty = cq.empty, true
		only = cq.only
		cq.mu.Unlock()
		return 0, vain, only
	}
	defer cq.mu.Unlock()
	for i := range n {
		cq.ring.Take(&wc[i])
	}
	polled(wc[:n])
	cq.empty = false
	if cq.ring.Slack() && !cq.closed {
		cq.reclaim.Add(&cq.rnic.reclaimer, cqMemory{cq})
	}
	return n, false, cq.only
}

// Arm asks for one notice on Events: for the next completion or, with
// solicitedOnly, for the next that the peer solicited or that is an error.
// Completions that are there already cause no notice: poll, arm, and poll again. A later
// Arm for solicited completions does not weaken one for the next.
func (cq *CQ) Arm(solicitedOnly bool) {
	if cq.made() != nil {
		return
	}
	cq.mu.Lock()
	want := armedNext
	if solicitedOnly {
		want = armedSolicited
	}
	cq.arm = max(cq.arm, want)
	cq.mu.Unlock()
	cq.rearmReads()
}

func (cq *CQ) disarm(solicited bool) bool {
	if cq.arm == armedNext || cq.arm == armedSolicited && solicited {
		cq.arm = armedNot
		return true
	}
	return false
}

// Events returns the channel of the notices that Arm asks for. It holds one notice. A goroutine that serves several CQs
// selects from the channels of all.
func (cq *CQ) Events() <-chan struct{} {
	if cq.made() != nil {
		return nil
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.noticed()
}

func (cq *CQ) noticed() chan struct{} {
	if cq.events == nil {
		cq.events = make(chan struct{}, 1)
	}
	return cq.events
}

// push adds completions of a QP. Of those who wait it wakes one, who wakes the next. It reports whether one has waited
// for completions of this QP alone.
func (cq *CQ) push(u upcalls, done []engine.Completion, cause error) (waited bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	mute := u.qp.mute.Load()
	for i := range done {
		if mute || cq.closed || cq.overflow || cq.ring.Full() {
			var wc WC
			u.setWC(&wc, &done[i], cause)
			cq.dropped(wc)
			continue
		}
		wc := cq.ring.Add() // zero: Take leaves nothing there
		u.setWC(wc, &done[i], cause)
		cq.notify(wc)
	}
	waited = cq.only == u.qp && cq.waiters > 0
	cq.passOn()
	return waited
}

// cqMemory is the CQ's memory, for the reclaimer.
type cqMemory struct{ cq *CQ }

// Reclaim gives back what was not used since the call before.
func (m cqMemory) Reclaim() bool {
	m.cq.mu.Lock()
	defer m.cq.mu.Unlock()
	m.cq.ring.Trim()
	return m.cq.reclaim.Keep(!m.cq.closed && m.cq.ring.Slack())
}

func (cq *CQ) notify(wc *WC) {
	if cq.disarm(wc.Solicited || wc.Status != StatusSuccess) {
		wake(cq.noticed())
	}
}

// dropped gives up the CQ and its QPs because a completion found no room, unless nobody wants it. The caller may
// hold the lock of a QP, so a goroutine of its own fails the QPs; push wakes who waits.
func (cq *CQ) dropped(wc WC) {
	polled([]WC{wc})
	if cq.overflow || cq.closed || wc.QP.mute.Load() {
		return
	}
	cq.overflow = true
	cq.rnic.event(Event{Kind: EventCQOverflow, CQ: cq, Err: ErrCQOverflow})
	cq.notify(&WC{Status: StatusFlushed}) // of which nothing will be found: but Wait says why
	victims := slices.Collect(cq.qps())
	go func() {
		for _, qp := range victims {
			_ = qp.abort(ErrCQOverflow)
		}
	}()
}

// Close ends the CQ and wakes those who wait for it. It fails with ErrBadState while a QP
// uses the CQ, and with ErrClosed if the CQ was closed before. Completions that are there can
// still be polled. A CQ that was made for a QP which had been given none ends with that QP:
// closing it then is no error.
func (cq *CQ) Close() error {
	if err := cq.made(); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.used > 0 {
		return &OpError{Op: "close CQ", Err: inUse(cq.used)}
	}
	if cq.closed && !cq.auto {
		return &OpError{Op: "close CQ", Err: errCQClosed}
	}
	if !cq.closed {
		cq.closed = true
		cq.rnic.reclaimer.Drop(cqMemory{cq})
		cq.rnic.ledger.release(cq.shares()...)
	}
	cq.passOn()
	return nil
}

// Resize changes how many completions the CQ has room for, 1 to RNICAttr.MaxCQDepth. Completions that wait in it stay,
// in order; a depth that is less than their number is ErrInvalid. Give a CQ that more QPs are going to use the depth
// that Committed will say, before they are created.
func (cq *CQ) Resize(depth int) error {
	if err := cq.made(); err != nil {
		return err
	}
	if err := cq.resize(depth); err != nil {
		return &OpError{Op: "resize CQ", Err: err}
	}
	return nil
}

func (cq *CQ) resize(depth int) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.closed:
		return errCQClosed
	case cq.overflow:
		return errCQLost
	case depth < max(1, cq.ring.Len()) || depth > maxCQDepth:
		return fmt.Errorf("%w: depth %d, with %d completions in the CQ; the most is %d",
			ErrInvalid, depth, cq.ring.Len(),
			maxCQDepth)
	}
	if err := cq.rnic.ledger.change(resCQEntry, depth-cq.ring.Limit()); err != nil {
		return err
	}
	cq.ring.SetLimit(depth)
	return nil
}

// Resize changes how many receives the queue holds, 1 to MaxQueueDepth. The receives in it stay, in order; a depth that
// is less than the number of these and of those whose completions were not polled yet, or less than SRQConfig.PerQP or
// the limit that is armed, is ErrInvalid. The CQs of its QPs need room for the new depth: see CQ.Resize.
func (s *SRQ) Resize(depth int) error {
	if err := s.made(); err != nil {
		return err
	}
	if err := s.resize(depth); err != nil {
		return &OpError{Op: "resize SRQ", Err: err}
	}
	return nil
}

func (s *SRQ) resize(depth int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := int64(s.work.Len()) + s.out.Load()
	switch {
	case s.ended:
		return errSRQClosed
	case depth < 1 || int64(depth) < used || depth > MaxQueueDepth:
		return fmt.Errorf("%w: depth %d, with %s outstanding; the most is %d", ErrInvalid, depth,
			wording.Count(used, "receive"), MaxQueueDepth)
	case depth < s.perQP:
		return fmt.Errorf("%w: depth %d is less than a QP's share, SRQConfig.PerQP, which is %d",
			ErrInvalid, depth, s.perQP)
	case depth < s.limit:
		return fmt.Errorf("%w: depth %d is less than the limit that is armed, %d: Arm a lower one first",
			ErrInvalid, depth,
			s.limit)
	}
	if err := s.pd.rnic.ledger.change(resWR, depth-s.work.Limit()); err != nil {
		return err
	}
	s.work.SetLimit(depth)
	return nil
}

// change takes more of a resource, or gives some back.
func (l *ledger) change(of resource, by int) error {
	if by > 0 {
		return l.reserve(share{of, by})
	}
	l.release(share{of, -by})
	return nil
}
