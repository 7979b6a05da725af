package iwarp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/internal/wording"
)

// SRQConfig configures a Shared Receive Queue.
type SRQConfig struct {
	// Depth is how many receives it holds. If zero, 512.
	Depth int
	// Limit, if it is not zero, asks for one EventSRQLimit when fewer receives than
	// that are left; Arm asks for another.
	Limit int
	// PerQP, if it is not zero, bounds how many receives one QP may hold at a time: those
	// that it has taken and whose completions were not polled. A peer that sends more
	// loses its connection, as one that finds no receive does; the others keep theirs
	// (RFC 5042, section 6.4.3.1).
	PerQP int
	// SendTimeout bounds how long a peer may take to finish a Send that it has begun, and that
	// holds a receive meanwhile: this time, and a second more for each 64 KiB that have come.
	// After that its connection ends. If zero, 10 s; if negative, there is no bound.
	SendTimeout time.Duration
}

// An SRQ is a Shared Receive Queue. Several QPs of one Protection Domain take their
// receives from it, in the order in which messages arrive.
type SRQ struct {
	pd          *PD
	perQP       int
	sendTimeout time.Duration

	mu    sync.Mutex
	work  ring.Ring[engine.RecvWork]
	limit int
	users int
	taken map[*QP]uint64
	// waiting are the QPs with messages that have found no receive and wait for one: QPConfig.RNR.
	waiting map[*QP]struct{}
	ended   bool
	reclaim reclaim.Entry

	out atomic.Int64 // receives taken whose completions were not polled yet
}

const (
	defaultSRQDepth    = 512
	defaultSendTimeout = 10 * time.Second
)

// CreateSRQ returns an empty Shared Receive Queue.
func (pd *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	cfg.Depth = orDefault(cfg.Depth, defaultSRQDepth)
	if err := cfg.check(); err != nil {
		return nil, &OpError{Op: "create SRQ", Err: err}
	}
	if err := pd.attach(userSRQ); err != nil {
		return nil, &OpError{Op: "create SRQ", Err: err}
	}
	s := &SRQ{
		pd: pd, perQP: cfg.PerQP, sendTimeout: orDefault(cfg.SendTimeout, defaultSendTimeout),
		work: ring.New[engine.RecvWork](cfg.Depth), limit: cfg.Limit, taken: make(map[*QP]uint64),
	}
	if err := pd.rnic.ledger.reserve(s.shares()...); err != nil {
		pd.detach(userSRQ)
		return nil, &OpError{Op: "create SRQ", Err: err}
	}
	return s, nil
}

// check names the setting that is out of its range, and the range.
func (cfg *SRQConfig) check() error {
	switch {
	case cfg.Depth < 0 || cfg.Depth > MaxQueueDepth:
		return fmt.Errorf("%w: SRQConfig.Depth is %d, and is to be 1 to %d, or 0 for %d", ErrInvalid, cfg.Depth,
			MaxQueueDepth, defaultSRQDepth)
	case cfg.Limit < 0 || cfg.Limit > cfg.Depth:
		return fmt.Errorf("%w: SRQConfig.Limit is %d, and is to be 0 to the Depth, %d",
			ErrInvalid, cfg.Limit, cfg.Depth)
	case cfg.PerQP < 0 || cfg.PerQP > cfg.Depth:
		return fmt.Errorf("%w: SRQConfig.PerQP is %d, and is to be 0 (no bound) to the Depth, %d",
			ErrInvalid, cfg.PerQP, cfg.Depth)
	}
	return nil
}

func (s *SRQ) shares() []share { return []share{{resSRQ, 1}, {resWR, s.work.Limit()}} }

// PostRecvs adds receives in order. It stops at the first that cannot be posted, and
// returns how many were; the error is about wrs[n].
func (s *SRQ) PostRecvs(wrs []RecvWR) (n int, err error) { return postAll(wrs, s.PostRecv) }

// PostRecv adds a receive for whichever QP needs one next.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	if err := s.made(); err != nil {
		return err
	}
	if err := s.post(wr); err != nil {
		return &OpError{Op: "post receive", Err: err}
	}
	s.serve()
	return nil
}

func (s *SRQ) post(wr *RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return errSRQClosed
	case int64(s.work.Len())+s.out.Load() >= int64(s.work.Limit()):
		return ErrQueueFull
	}
	var w engine.RecvWork
	if err := wr.engine(&w, sgeValidator{pd: s.pd}); err != nil {
		return err
	}
	*s.work.Add() = w
	return nil
}

// Arm asks for an EventSRQLimit when fewer than limit receives are left: 1 to the queue's
// depth, or 0 to ask for none. Any other is ErrInvalid, and changes nothing.
func (s *SRQ) Arm(limit int) error {
	if err := s.made(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch depth := s.work.Limit(); {
	case s.ended:
		return &OpError{Op: "arm SRQ", Err: errSRQClosed}
	case limit < 0 || limit > depth:
		err := fmt.Errorf("%w: a limit of %d, which is to be 0 to the depth, %d", ErrInvalid, limit, depth)
		return &OpError{Op: "arm SRQ", Err: err}
	}
	s.limit = limit
	return nil
}

func (s *SRQ) depth() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.work.Limit()
}

// takeRecv moves the oldest receive to dst, for a QP whose peer has begun a Send.
func (s *SRQ) takeRecv(qp *QP, dst *engine.RecvWork) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work.Len() == 0 || s.perQP > 0 && qp.srqHeld.count() >= int64(s.perQP) {
		return false
	}
	s.work.Take(dst)
	if s.work.Slack() {
		s.reclaim.Add(&s.pd.rnic.reclaimer, srqMemory{s})
	}
	s.out.Add(1)
	qp.srqHeld.countTaken()
	s.taken[qp]++
	if left := s.work.Len(); s.limit > left {
		s.limit = 0 // one shot
		s.pd.rnic.event(Event{Kind: EventSRQLimit, SRQ: s, QP: qp})
	}
	return true
}

// srqSource is the SRQ as the Machine of one QP sees it.
type srqSource struct {
	srq *SRQ
	qp  *QP
}

// Take moves the oldest receive to dst.
func (s srqSource) Take(dst *engine.RecvWork) bool { return s.srq.takeRecv(s.qp, dst) }

// Refusal says why Take found no receive.
func (s srqSource) Refusal() string {
	n := s.qp.srqHeld.count()
	if s.srq.perQP > 0 && n >= int64(s.srq.perQP) {
		return fmt.Sprintf("the QP holds its share of the Shared Receive Queue, %s; poll and repost them sooner, or raise "+
			"the share (SRQConfig.PerQP)", wording.Count(n, "receive"))
	}
	return "the Shared Receive Queue is empty; post to it sooner, as EventSRQLimit tells, or more"
}

// returnSlots takes back the places of receives that a QP, whose connection has
// ended, holds. Their completions stay in the CQ.
func (s *SRQ) returnSlots(qp *QP) {
	s.mu.Lock() // who polls a completion whose place went back with the others posts at once, and is to find room
	defer s.mu.Unlock()
	s.out.Add(-qp.srqHeld.giveAllBack())
}

// serve tells the QPs that wait for a receive that one was posted.
func (s *SRQ) serve() {
	for _, qp := range s.waiters() {
		if c := connected(qp); c != nil {
			c.Ready()
		}
	}
}

// waiters returns the QPs that wait. Those that go on waiting say so again.
func (s *SRQ) waiters() (all []*QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for qp := range s.waiting {
		all = append(all, qp)
	}
	clear(s.waiting)
	return all
}

// srqMemory is the queue's memory, for the reclaimer.
type srqMemory struct{ s *SRQ }

// Reclaim gives back what was not used since the call before.
func (m srqMemory) Reclaim() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.work.Trim()
	return m.s.reclaim.Keep(!m.s.ended && m.s.work.Slack())
}

// Awaits notes that the QP waits for a receive. One that holds its share of the queue does not.
func (s srqSource) Awaits() bool {
	srq := s.srq
	srq.mu.Lock()
	defer srq.mu.Unlock()
	if srq.perQP > 0 && s.qp.srqHeld.count() >= int64(srq.perQP) {
		return false
	}
	if srq.waiting == nil {
		srq.waiting = make(map[*QP]struct{})
	}
	srq.waiting[s.qp] = struct{}{}
	return true
}

func (s *SRQ) attach(qp *QP) error {
	if err := s.made(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pd.rnic != qp.pd.rnic:
		return fmt.Errorf("%w: SRQ of another RNIC than the QP: create both with one PD", ErrInvalid)
	case s.pd != qp.pd:
		return fmt.Errorf("%w: SRQ of another Protection Domain than the QP: create both with one PD", ErrInvalid)
	case s.ended:
		return errSRQClosed
	}
	s.users++
	return nil
}

func (s *SRQ) detach(qp *QP) {
	s.mu.Lock()
	s.users--
	delete(s.taken, qp)
	delete(s.waiting, qp)
	s.mu.Unlock()
}

// Close ends the queue and drops the receives in it. It fails with ErrBadState while a
// QP uses the queue, and with ErrClosed if it was closed before.
func (s *SRQ) Close() error {
	if err := s.made(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		return &OpError{Op: "close SRQ", Err: inUse(s.users)}
	}
	if s.ended {
		return &OpError{Op: "close SRQ", Err: errSRQClosed}
	}
	s.ended = true
	s.pd.rnic.reclaimer.Drop(srqMemory{s})
	s.pd.rnic.ledger.release(s.shares()...)
	s.pd.detach(userSRQ)
	s.work = ring.New[engine.RecvWork](s.work.Limit())
	return nil
}

// srqHeld counts the receives of a Shared Receive Queue that the present connection of a QP holds:
// those it has taken whose completions were not polled. At its end their places go back all at once;
// completions that are polled after that count no more, and not for the QP's next connection either.
type srqHeld struct {
	v atomic.Uint64 // number of the connection, and in the lower 32 bits the receives
}

// next begins to count for another connection.
func (h *srqHeld) next() { h.v.Store(uint64(h.connection()+1) << 32) }

func (h *srqHeld) connection() uint32 { return uint32(h.v.Load() >> 32) }

func (h *srqHeld) count() int64 { return int64(uint32(h.v.Load())) }

func (h *srqHeld) countTaken() { h.v.Add(1) }

// giveBack takes note that a completion of a connection was polled. It reports whether that gives a
// place back.
func (h *srqHeld) giveBack(connection uint32) bool {
	for {
		v := h.v.Load()
		if uint32(v>>32) != connection || uint32(v) == 0 {
			return false
		}
		if h.v.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

// giveAllBack returns how many receives the connection, which has ended, still held.
func (h *srqHeld) giveAllBack() int64 {
	for {
		v := h.v.Load()
		if h.v.CompareAndSwap(v, v>>32<<32) {
			return int64(uint32(v))
		}
	}
}

// An SRQAttr is what SRQ.Query returns.
type SRQAttr struct {
	// Depth is how many receives the queue holds, and MaxSGE how many elements one may have.
	Depth, MaxSGE int
	// Limit is the number of receives under which an EventSRQLimit comes; 0: none is asked for.
	Limit int
	// PerQP is how many receives one QP may hold at a time; 0: there is no bound.
	PerQP int
	// Receives is how many are in the queue, and Taken how many the QPs have taken whose completions were not polled.
	Receives, Taken int
	// QPs is how many take their receives from the queue.
	QPs int
	// TakenBy is how many receives each of them has taken since it was created, by QPAttr.Num. An EventSRQLimit names
	// the QP that took the last receive above the limit: together they show which peer takes more than its share (RFC
	// 5042, section 6.4.3.1). It is nil if none was taken.
	TakenBy map[uint32]uint64
}

// Query returns the queue's present attributes.
func (s *SRQ) Query() SRQAttr {
	if s.made() != nil {
		return SRQAttr{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := SRQAttr{
		Depth: s.work.Limit(), MaxSGE: MaxSGE, Limit: s.limit, PerQP: s.perQP,
		Receives: s.work.Len(), Taken: int(s.out.Load()), QPs: s.users,
	}
	for qp, n := range s.taken {
		if a.TakenBy == nil {
			a.TakenBy = make(map[uint32]uint64)
		}
		a.TakenBy[qp.num] = n
	}
	return a
}
