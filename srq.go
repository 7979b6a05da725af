package iwarp

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/engine"
)

// SRQConfig configures a Shared Receive Queue.
type SRQConfig struct {
	// Depth is how many receives it holds. If zero, 512.
	Depth int
	// Limit, if it is not zero, has an EventSRQLimit sent, once, when fewer
	// receives are left; Arm asks for the next.
	Limit int
}

// An SRQ is a Shared Receive Queue. It serves the receives of several QPs of one
// Protection Domain, which take its entries in the order of arrival.
type SRQ struct {
	pd *PD

	mu    sync.Mutex
	slots []engine.RecvWork
	head  uint64
	tail  uint64
	limit int
	users int
	taken map[*QP]uint64
	ended bool

	out atomic.Int64 // receives taken whose completions were not polled yet
}

const defaultSRQDepth = 512

// CreateSRQ returns an empty Shared Receive Queue.
func (pd *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	cfg.Depth = orDefault(cfg.Depth, defaultSRQDepth)
	if cfg.Depth < 0 || cfg.Depth > MaxQueueDepth || cfg.Limit < 0 || cfg.Limit > cfg.Depth {
		return nil, &OpError{Op: "create SRQ", Err: fmt.Errorf("%w: depth %d, limit %d", ErrInvalid, cfg.Depth, cfg.Limit)}
	}
	if err := pd.attach(); err != nil {
		return nil, &OpError{Op: "create SRQ", Err: err}
	}
	s := &SRQ{pd: pd, slots: make([]engine.RecvWork, cfg.Depth), limit: cfg.Limit, taken: make(map[*QP]uint64)}
	if err := pd.rnic.ledger.take(s.shares()...); err != nil {
		pd.detach()
		return nil, &OpError{Op: "create SRQ", Err: err}
	}
	return s, nil
}

func (s *SRQ) shares() []share { return []share{{resSRQ, 1}, {resWR, len(s.slots)}} }

// PostRecv adds a receive for whichever QP needs one next.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	if err := s.post(wr); err != nil {
		return &OpError{Op: "post receive", Err: err}
	}
	return nil
}

func (s *SRQ) post(wr *RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return ErrClosed
	case int64(s.tail-s.head)+s.out.Load() >= int64(len(s.slots)):
		return ErrQueueFull
	}
	slot := &s.slots[s.tail%uint64(len(s.slots))]
	if err := wr.engine(slot); err != nil {
		*slot = engine.RecvWork{}
		return err
	}
	s.tail++
	return nil
}

// Arm asks for an EventSRQLimit when fewer than limit receives are left.
func (s *SRQ) Arm(limit int) {
	s.mu.Lock()
	s.limit = limit
	s.mu.Unlock()
}

// Len returns how many receives are left.
func (s *SRQ) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.tail - s.head)
}

// Taken returns how many receives each QP has taken since it was created. An
// EventSRQLimit names the QP that took the one too many: together they tell
// which peer takes more than its share (RFC 5042, section 6.4.3.1).
func (s *SRQ) Taken() map[*QP]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.taken)
}

// take moves the oldest receive to dst, for a QP whose peer has begun a Send.
func (s *SRQ) take(qp *QP, dst *engine.RecvWork) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == s.tail {
		return false
	}
	e := &s.slots[s.head%uint64(len(s.slots))]
	*dst, *e = *e, engine.RecvWork{}
	s.head++
	s.out.Add(1)
	s.taken[qp]++
	if left := int(s.tail - s.head); s.limit > left {
		s.limit = 0 // one shot
		s.pd.rnic.event(Event{Kind: EventSRQLimit, SRQ: s, QP: qp})
	}
	return true
}

// srqSource is the SRQ as the engine of one QP sees it.
type srqSource struct {
	srq *SRQ
	qp  *QP
}

// Take moves the oldest receive to dst.
func (s srqSource) Take(dst *engine.RecvWork) bool { return s.srq.take(s.qp, dst) }

func (s *SRQ) attach(qp *QP) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pd != qp.pd:
		return fmt.Errorf("%w: SRQ of another Protection Domain", ErrInvalid)
	case s.ended:
		return fmt.Errorf("the SRQ: %w", ErrClosed)
	}
	s.users++
	return nil
}

func (s *SRQ) detach(qp *QP) {
	s.mu.Lock()
	s.users--
	delete(s.taken, qp)
	s.mu.Unlock()
}

// Close ends the queue and drops the receives in it. It is refused while a QP
// uses it.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		return &OpError{Op: "close SRQ", Err: fmt.Errorf("%w: %d QPs use it", ErrBadState, s.users)}
	}
	if !s.ended {
		s.ended = true
		s.pd.rnic.ledger.give(s.shares()...)
		s.pd.detach()
	}
	clear(s.slots)
	s.head = s.tail
	return nil
}
