package iwarp

import (
	"fmt"
	"maps"
	"sync"

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
}

const defaultSRQDepth = 512

// CreateSRQ returns an empty Shared Receive Queue.
func (pd *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	if cfg.Depth == 0 {
		cfg.Depth = defaultSRQDepth
	}
	if cfg.Depth < 0 || cfg.Depth > MaxQueueDepth || cfg.Limit < 0 || cfg.Limit > cfg.Depth {
		return nil, fmt.Errorf("iwarp: create SRQ: %w: depth %d, limit %d", ErrInvalid, cfg.Depth, cfg.Limit)
	}
	return &SRQ{pd: pd, slots: make([]engine.RecvWork, cfg.Depth), limit: cfg.Limit, taken: make(map[*QP]uint64)}, nil
}

// PostRecv adds a receive for whichever QP needs one next.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	var w engine.RecvWork
	if err := wr.engine(&w); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail-s.head == uint64(len(s.slots)) {
		return ErrQueueFull
	}
	s.slots[s.tail%uint64(len(s.slots))] = w
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

func (s *SRQ) attach() {
	s.mu.Lock()
	s.users++
	s.mu.Unlock()
}

func (s *SRQ) detach(qp *QP) {
	s.mu.Lock()
	s.users--
	delete(s.taken, qp)
	s.mu.Unlock()
}

// Close ends the queue. It is refused while a QP uses it.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		return fmt.Errorf("iwarp: close SRQ: %w: %d QPs use it", ErrBadState, s.users)
	}
	clear(s.slots)
	s.head = s.tail
	return nil
}
