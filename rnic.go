package iwarp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// RNICConfig configures an RNIC. The zero value is what most programs want.
type RNICConfig struct {
	// Observing.
	//
	// Logger gets records from slog.LevelWarn (connections lost before Accept) down to LevelFrame (every FPDU). If nil,
	// nothing is logged. A handler that blocks holds up calls: see docs/settings.md.
	Logger *slog.Logger
	// EventDepth is how many asynchronous events are kept for NextEvent; older ones are dropped, and counted. If zero,
	// 1024.
	EventDepth int

	// The wire.
	//
	// Kind decides which versions of DDP and RDMAP the RNIC can use, and which
	// revisions of MPA it accepts. If zero, mpa.KindPermissive: all of them.
	Kind mpa.Kind
	// Markers has connections ask for markers in what they receive (M=1), even where neither QP nor offer does. An
	// RDMAC RNIC always asks. By default they do not, as not every peer can send them.
	Markers bool
	// CRC is the administrator's policy on CRCs: to do without them is not the program's choice (RFC 5044, section 4.4).
	CRC CRCPolicy

	// Spin is QPConfig.Spin of QPs that have none. If zero, 100 µs; if negative, a wait sleeps at once.
	Spin time.Duration

	// Limits bounds what can be taken from the RNIC. If zero, nothing is bounded.
	Limits Limits
}

// LevelFrame is the level of the records about single FPDUs: see RNICConfig.Logger.
const LevelFrame = slog.LevelDebug - 4

const (
	levelStartup    = slog.LevelWarn
	levelConnection = slog.LevelInfo
	levelPacket     = slog.LevelDebug
)

// An RNIC is an iWARP endpoint: the registered memory, the QPs and the CQs of one
// program, or of a part of a program that is to be kept apart from the rest. Any
// goroutine may call its methods and those of the objects made from it.
//
// Only its users can take anything from an RNIC, within its Limits: a peer can neither
// create nor reserve anything in it (RFC 5042, section 3).
type RNIC struct {
	log     *slog.Logger
	logging bool // somewhere: otherwise no record is made
	kind    mpa.Kind
	markers bool // the marker receive preference
	crc     CRCPolicy
	limits  Limits
	spin    time.Duration
	table   *memory.Table
	ledger  ledger
	ahead   *admission.Quota
	early   *admission.EarlyQuota

	closing chan struct{} // Close was called; closed with mu

	mu     sync.Mutex
	closed bool // nothing more is given out
	nextPD uint32
	nextQP uint32
	qps    map[*QP]struct{}
	lns    map[*Listener]struct{}
	past   counters // of QPs that no longer exist

	startup   startupCounts
	dismissed admission.Dismissals // peers that were rejected whose Listener has ended, or that had none
	events    eventQueue
	reclaimer reclaim.Reclaimer
	calls     sync.Pool // of *call
	postings  sync.Pool // of *posting
	timers    sync.Pool // of *time.Timer
	born      time.Time
}

// NewRNIC returns an RNIC.
func NewRNIC(cfg RNICConfig) *RNIC {
	r := &RNIC{
		born: time.Now(), log: cfg.Logger, kind: cmp.Or(cfg.Kind, mpa.KindPermissive), crc: cfg.CRC, limits: cfg.Limits,
		table: memory.NewTable(), qps: make(map[*QP]struct{}), lns: make(map[*Listener]struct{}),
		closing: make(chan struct{}),
	}
	r.spin = orDefault(cfg.Spin, 100*time.Microsecond)
	r.markers = cfg.Markers || r.kind == mpa.KindRDMAC
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.logging = r.log.Handler() != slog.DiscardHandler
	r.ledger.init(cfg.Limits)
	r.ahead = admission.NewQuota(cfg.Limits.HeldBytes, overLimit("bytes held ahead of their turn"))
	r.early = admission.NewEarlyQuota(cfg.Limits.HeldBytes, overLimit("bytes shown ahead of order"))
	r.events.init(cfg.EventDepth)
	return r
}

// An RNICAttr is what RNIC.Query returns.
type RNICAttr struct {
	// Kind is the kind of RNIC.
	Kind mpa.Kind
	// MarkersReceive tells whether connections ask for markers in what they receive
	// when neither the QP nor the offer says otherwise.
	MarkersReceive bool
	// CRC is the policy on CRCs.
	CRC CRCPolicy
	// Versions are those of DDP and RDMAP that the RNIC has. VersionSelectable tells
	// whether there are several, of which a QP can be set to one.
	Versions          []Version
	VersionSelectable bool
	// Limits are those that the RNIC was configured with. Zero means no bound.
	Limits Limits
	// MaxQueueDepth bounds each Send, Receive and Shared Receive Queue, and MaxCQDepth
	// each Completion Queue, in entries; MaxSGE the elements of a request, and
	// MaxInline its inline data, in bytes.
	MaxQueueDepth, MaxCQDepth, MaxSGE, MaxInline int
	// MaxMessage bounds the bytes of a message, of any kind.
	MaxMessage int64
	// MaxIRD and MaxORD bound the RDMA Reads and Atomic Operations outstanding on one connection.
	MaxIRD, MaxORD int
	// MaxHeld is how many bytes of buffers a peer can make one connection hold. It leaves out early segments, and what
	// waits because of QPConfig.RNR: see docs/settings.md.
	MaxHeld int
}

// Query returns the RNIC's attributes, which do not change.
func (r *RNIC) Query() RNICAttr {
	if r.made() != nil {
		return RNICAttr{}
	}
	a := RNICAttr{
		Kind: r.kind, MarkersReceive: r.markers, CRC: r.crc, Versions: r.versions(), Limits: r.limits,
		MaxQueueDepth: MaxQueueDepth, MaxCQDepth: maxCQDepth, MaxSGE: MaxSGE, MaxInline: MaxInline,
		MaxIRD: int(mpa.MaxDepth), MaxORD: int(mpa.MaxDepth), MaxMessage: engine.MaxMessage,
		MaxHeld: engine.GatherArena + tcp.BufferSize,
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

// Close ends the RNIC's Listeners, aborts the connections that are left, and ends NextEvent.
// Shutdown closes them in order. Nothing more can be taken from the RNIC then: calls that allocate,
// create, register, listen or connect return ErrClosed. What is there can still be closed.
// Closing an RNIC again returns ErrClosed, also after Shutdown.
//
// That is the rule for RNIC, PD, CQ, SRQ, MR and Listener. QP.Close and QP.Abort can be called
// again: Close tells how the connection has ended, each time.
func (r *RNIC) Close() error {
	if err := r.made(); err != nil {
		return err
	}
	if !r.markClosed() {
		return &OpError{Op: "close RNIC", Err: errRNICClosed}
	}
	for _, l := range r.shut() {
		l.stop(errRNICClosed)
		_ = l.hangUp()
		l.dismissed.End(overFor(errRNICClosed), nil)
	}
	r.dismissed.End(overFor(errRNICClosed), nil)
	qps := r.QPs()
	for _, qp := range qps {
		qp.abort(errRNICClosed) // all of them, before the first is waited for
	}
	for _, qp := range qps {
		for over := false; !over; over = qp.destroy() {
			qp.abortAndWait(errRNICClosed)
		}
	}
	r.events.close()
	return nil
}

// markClosed notes that it is, and reports whether the RNIC is being closed for the first time.
func (r *RNIC) markClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closing:
		return false
	default:
		close(r.closing)
		return true
	}
}

// QPs returns the QPs that exist, in the order of their numbers.
func (r *RNIC) QPs() []*QP {
	if r.made() != nil {
		return nil
	}
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
		return errRNICClosed
	}
	qp.holds.of |= holdsRNIC // before Close of the RNIC can see it
	r.qps[qp] = struct{}{}
	return nil
}

// remove forgets a QP, but keeps its counters.
func (r *RNIC) remove(qp *QP) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.qps, qp)
	r.past.addQP(qp)
}

// NextEvent waits for an asynchronous event: something that happened to a QP, CQ or SRQ
// as a whole and is not the outcome of one work request. Its error is an *OpError that wraps the context's, or
// ErrClosed when the RNIC is closed and no event is left.
func (r *RNIC) NextEvent(ctx context.Context) (Event, error) {
	if err := r.made(); err != nil {
		return Event{}, err
	}
	return r.events.next(ctx)
}

// now reads the clock. It takes half the time of time.Now, as it leaves the wall clock alone.
func (r *RNIC) now() time.Time { return r.born.Add(time.Since(r.born)) }

func (r *RNIC) event(e Event) { r.events.push(e) }
