package iwarp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// RNICConfig configures an RNIC. The zero value is what most programs want.
type RNICConfig struct {
	// Logger gets records at LevelConnection, LevelPacket and LevelFrame. If nil,
	// nothing is logged.
	Logger *slog.Logger
	// EventDepth is how many asynchronous events are kept for NextEvent; older
	// ones are dropped, and counted. If zero, 1024.
	EventDepth int
	// Kind is the kind of RNIC to be, which decides on the versions of DDP and RDMAP
	// it can use and on the revisions of MPA it takes. If zero, mpa.KindPermissive:
	// any. [N01]
	Kind mpa.Kind
	// Markers is the marker receive preference: connections ask for markers in what
	// they receive (M=1) even where neither the QP nor the offer does. An RDMAC RNIC
	// always has them. By default connections do without: not every peer can send
	// them. [V01]
	Markers bool
	// Limits bounds what can be taken of the RNIC. If zero, nothing is bounded.
	Limits Limits
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
//
// It hands out all that its users share, within its Limits, and to nobody but
// them: a peer can neither make nor reserve anything of it (RFC 5042, section 3).
type RNIC struct {
	log     *slog.Logger
	kind    mpa.Kind
	markers bool // the marker receive preference
	limits  Limits
	table   *memory.Table
	ledger  ledger

	mu     sync.Mutex
	closed bool
	nextPD uint32
	nextQP uint32
	qps    map[*QP]struct{}
	past   Stats // of QPs that are no more

	startup startupCounts
	events  eventQueue
}

// NewRNIC returns an RNIC.
func NewRNIC(cfg RNICConfig) *RNIC {
	r := &RNIC{
		log: cfg.Logger, kind: cmp.Or(cfg.Kind, mpa.KindPermissive), limits: cfg.Limits,
		table: memory.NewTable(), qps: make(map[*QP]struct{}),
	}
	r.markers = cfg.Markers || r.kind == mpa.KindRDMAC
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.ledger.init(cfg.Limits)
	r.events.init(cfg.EventDepth)
	return r
}

// An RNICAttr is what RNIC.Query returns.
type RNICAttr struct {
	// Kind is the kind of RNIC. [N01]
	Kind mpa.Kind
	// MarkersReceive is whether connections ask for markers in what they receive, if
	// neither the QP nor the offer says otherwise.
	MarkersReceive bool
	// Versions are those of DDP and RDMAP that the RNIC has, and VersionSelectable is
	// whether a QP can be set to one of several. [V01]
	Versions          []Version
	VersionSelectable bool
	// Limits are those that the RNIC was configured with. Zero means no bound.
	Limits Limits
	// MaxQueueDepth bounds each Send, Receive and Shared Receive Queue, and MaxCQDepth
	// each Completion Queue, in entries; MaxSGE the elements of a request, and
	// MaxInline its inline data, in octets.
	MaxQueueDepth, MaxCQDepth, MaxSGE, MaxInline int
	// MaxIRD and MaxORD bound the RDMA Reads outstanding on one connection. [P45]
	MaxIRD, MaxORD int
}

// Query returns the RNIC's attributes. They do not change.
func (r *RNIC) Query() RNICAttr {
	a := RNICAttr{
		Kind: r.kind, MarkersReceive: r.markers, Versions: r.versions(), Limits: r.limits,
		MaxQueueDepth: MaxQueueDepth, MaxCQDepth: MaxCQDepth, MaxSGE: MaxSGE, MaxInline: MaxInline,
		MaxIRD: mpa.NoNegotiation - 1, MaxORD: mpa.NoNegotiation - 1,
	}
	a.VersionSelectable = len(a.Versions) > 1
	if r.limits.IRD > 0 {
		a.MaxIRD = min(a.MaxIRD, r.limits.IRD)
	}
	return a
}

func (r *RNIC) versions() (v []Version) {
	for _, version := range []Version{Version0, Version1} {
		if hasVersion(r.kind, version) {
			v = append(v, version)
		}
	}
	return v
}

// Close aborts the connections that are left and ends NextEvent.
func (r *RNIC) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, qp := range r.QPs() {
		_ = qp.Abort()
	}
	r.events.close()
	return nil
}

// QPs returns the QPs that exist, by their numbers. Whoever wants to end idle
// connections compares the counters of their Stats from time to time.
func (r *RNIC) QPs() []*QP {
	r.mu.Lock()
	qps := make([]*QP, 0, len(r.qps))
	for qp := range r.qps {
		qps = append(qps, qp)
	}
	r.mu.Unlock()
	slices.SortFunc(qps, func(a, b *QP) int { return int(a.num) - int(b.num) })
	return qps
}

// number gives a new QP its number.
func (r *RNIC) number() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextQP++
	return r.nextQP
}

// enroll enters a QP that is ready to be used.
func (r *RNIC) enroll(qp *QP) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.qps[qp] = struct{}{}
	return nil
}

// remove keeps the counters of a QP that is no more.
func (r *RNIC) remove(qp *QP) {
	s := qp.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.qps, qp)
	r.past.add(&s)
}

// NextEvent waits for an asynchronous event: something that happened to a QP or
// CQ as a whole and is not the outcome of one work request. Its error is the
// context's, or ErrClosed when the RNIC is closed and no event is left.
func (r *RNIC) NextEvent(ctx context.Context) (Event, error) { return r.events.next(ctx) }

func (r *RNIC) event(e Event) { r.events.push(e) }
