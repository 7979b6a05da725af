package iwarp

import (
	"context"
	"log/slog"
	"sync"

	"github.com/goiwarp/iwarp/internal/memory"
)

// RNICConfig configures an RNIC. The zero value is what most programs want.
type RNICConfig struct {
	// Logger gets records at LevelConnection, LevelPacket and LevelFrame. If nil,
	// nothing is logged.
	Logger *slog.Logger
	// EventDepth is how many asynchronous events are kept for NextEvent; older
	// ones are dropped, and counted. If zero, 1024.
	EventDepth int
}

// Levels of what is logged: connections and how they end; startup frames and
// messages about a connection as a whole; every FPDU.
const (
	LevelConnection = slog.LevelInfo
	LevelPacket     = slog.LevelDebug
	LevelFrame      = slog.LevelDebug - 4
)

// An RNIC is an iWARP endpoint: the registered memory, the QPs and CQs of one
// program, or of one part of it that is to be kept apart. Its methods, and those
// of the objects made from it, may be called by any goroutine.
type RNIC struct {
	log   *slog.Logger
	table *memory.Table

	mu      sync.Mutex
	closed  bool
	nextPD  uint32
	nextQP  uint32
	qps     map[*QP]struct{}
	past    Stats // of QPs that are no more
	startup StartupStats

	events eventQueue
}

// NewRNIC returns an RNIC.
func NewRNIC(cfg RNICConfig) *RNIC {
	r := &RNIC{log: cfg.Logger, table: memory.NewTable(), qps: make(map[*QP]struct{})}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.events.init(cfg.EventDepth)
	return r
}

// AllocPD returns a new Protection Domain.
func (r *RNIC) AllocPD() *PD {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextPD++
	return &PD{rnic: r, num: r.nextPD}
}

// Close aborts the connections that are left and ends NextEvent.
func (r *RNIC) Close() error {
	r.mu.Lock()
	r.closed = true
	left := make([]*QP, 0, len(r.qps))
	for qp := range r.qps {
		left = append(left, qp)
	}
	r.mu.Unlock()
	for _, qp := range left {
		_ = qp.Abort()
	}
	r.events.close()
	return nil
}

// add registers a QP and gives it its number.
func (r *RNIC) add(qp *QP) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.nextQP++
	qp.num = r.nextQP
	r.qps[qp] = struct{}{}
	return nil
}

func (r *RNIC) remove(qp *QP) {
	s := qp.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.qps[qp]; ok {
		delete(r.qps, qp)
		r.past.add(&s)
	}
}

// NextEvent waits for an asynchronous event: something that happened to a QP or
// CQ as a whole and is not the outcome of one work request.
func (r *RNIC) NextEvent(ctx context.Context) (Event, error) { return r.events.next(ctx) }

func (r *RNIC) event(e Event) {
	r.events.push(e)
}
