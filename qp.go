package iwarp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// State is the state of a QP.
type State uint8

const (
	// StateIdle: no connection. Work can be posted; it waits.
	StateIdle = State(engine.Idle)
	// StateRTS, Ready to Send: the connection is up.
	StateRTS = State(engine.RTS)
	// StateTerminate: the connection ends because of an error, see Err.
	StateTerminate = State(engine.Terminate)
	// StateError: the connection is gone and all work flushed.
	StateError = State(engine.Error)
	// StateClosing: Modify closes the connection, without draining it.
	StateClosing = State(engine.Closing)
	// StateClosed: the connection has ended in order; Modify(StateIdle) makes the QP
	// ready for another. To the RDMA verbs this is Idle.
	StateClosed = StateClosing + 1
)

// String names the state as the RDMA verbs do.
func (s State) String() string {
	if s == StateClosed {
		return "Closed"
	}
	return engine.State(s).String()
}

// Bounds and defaults of queues.
const (
	MaxQueueDepth    = 1 << 16 // entries
	MaxInline        = 4 << 10 // octets
	defaultDepth     = 128     // entries
	defaultMaxInline = 256     // octets
)

// QPConfig configures a Queue Pair. The zero value is usable.
type QPConfig struct {
	// SendCQ and RecvCQ get the completions. If one is nil, the other serves both
	// queues. If both are nil, the QP gets one CQ of its own, large enough for all
	// that can be outstanding.
	SendCQ, RecvCQ *CQ
	// SRQ, if it is set, supplies the receives in place of a queue of the QP's own.
	SRQ *SRQ
	// SendDepth and RecvDepth are the entries of the queues, at most
	// MaxQueueDepth. If zero, 128.
	SendDepth, RecvDepth int
	// MaxInline bounds inline data, in octets; it is at most the constant MaxInline.
	// If zero, 256; if negative, no inline data is allowed.
	MaxInline int
	// CloseTimeout bounds how long a close goes on without progress, and how long the
	// peer may take to close its half after a Terminate. If zero, 5 s. Progress is a
	// request that completes, a message that is delivered, or 16 KiB of our work, of Reads
	// that were there when the close began, or of what the peer sends; our FIN is progress
	// too. After half of the time, no more Reads of the peer's are taken.
	CloseTimeout time.Duration
	// CloseLimit bounds a Close as a whole, whatever its progress. If zero, 1 min; if
	// negative, there is no limit.
	CloseLimit time.Duration
	// GapTimeout, over SCTP or another SegmentStream, bounds the wait for a segment when others have come that were sent after
	// it: the connection ends with a TerminateError that wraps ErrGap. A segment that the network has lost comes again, in
	// a second or a few. If zero, 1 min; if negative, there is no limit.
	GapTimeout time.Duration
	// IdleTimeout ends a connection over which nothing was sent or received for that
	// long, with an error that wraps ErrIdle: a peer that does nothing costs as much as
	// one that works (RFC 5042, section 6.4.2). What Nudge has us send does not count. If
	// zero, a connection may be idle. So may one that holds its peer back (Unready), until a receive is posted.
	IdleTimeout time.Duration
	// KeepAlive, if it is enabled, has TCP probe a peer that says nothing, in place of
	// what Dialer.Net or ListenConfig.Net have set. UserTimeout, if it is not zero,
	// bounds how long octets may stay unacknowledged before TCP gives the connection
	// up: TCP_USER_TIMEOUT of Linux. Neither has an effect on systems and connections
	// that do not have it.
	KeepAlive   net.KeepAliveConfig
	UserTimeout time.Duration
	// Nudge is how long an Initiator that has heard nothing after its first FPDU
	// waits before it sends a zero-length RDMA Write to wake up a peer that may
	// have missed it: Linux's siw does, now and then. If zero, 10 ms; if negative,
	// never. It is never sooner than after three times the time that the startup frames took
	// (counted up to 1 s). No peer's consumer notices.
	Nudge time.Duration
	// StrictRTR refuses a peer-to-peer Initiator whose first message is not the
	// Ready-to-Receive indication that was agreed on. By default that is tolerated.
	StrictRTR bool
	// Linger is how long our direction stays open with nothing to send when the peer
	// has closed its own (EventHalfClosed), so that more work can be posted. If zero,
	// 100 ms; if negative, the connection ends when what was posted is finished, as
	// with the RDMA verbs.
	Linger time.Duration
	// SendEarly is how long after its Reply a Responder begins to send although the Initiator's first FPDU has not
	// come, where the Initiator chose the client-server model (A=0) or a revision before 2. RFC 5044, section 7.1.2,
	// forbids it, and an RNIC that is not yet in Full Operation may end the connection over it: Linux's siw does so
	// itself, and takes it from others unless it comes together with the Reply. If zero (and no Preset knows better) or
	// negative, such a Responder's requests wait: see ErrAwaitingInitiator.
	SendEarly time.Duration
	// HalfClose leaves our direction open when the peer has closed its own, until
	// Close, whatever Linger is. The peer's Close does not wait for longer than its
	// CloseTimeout.
	HalfClose bool
	// Unready, if it is not zero, has Sends and Immediate Data wait while no receive is posted for them, as on
	// InfiniBand, where the receiver is "not ready" and the peer tries again. See Unready.
	Unready Unready
	// Confirm has a Send, a Write or Immediate Data complete when the peer has carried it out, as on InfiniBand, and
	// not when the lower layer has taken it, which is all that RFC 5041 asks. A request that the peer refuses then
	// fails itself, with StatusRemoteAccess or StatusRemoteOperation; without Confirm it would have succeeded, and the
	// connection would have ended after it. An empty RDMA Read after the requests asks the peer, which needs to know
	// nothing of it. It counts in ORD and IRD: with an ORD of 0 there are no confirmations. They take a round trip, and
	// two more FPDUs for what is sent together. Linux's siw answers such a Read wrongly while it sends (docs/interop.md).
	//
	// Where the peer has Unready, a Send is confirmed when it has found its receive. A peer that has closed its half
	// confirms nothing more: what it was asked to confirm and has not is flushed, as nobody knows what became of it,
	// and all after it. Where there is no such request, what is sent after that completes as without Confirm. The
	// connection ends in order all the same.
	Confirm bool
	// CheckLate has the memory that a request names checked when the request is carried out, and not when it is posted: that an MR is named, that it
	// is registered, of this Protection Domain, long enough, and has LocalWrite where that is needed. As with RDMA hardware, a request with something
	// wrong then fails with StatusLocalProtection or StatusLocalAccess, and the connection ends. Without CheckLate such a request is refused when it
	// is posted. Receives of an SRQ are judged when they are posted.
	CheckLate bool
	// Deny is what the peer may not do on this QP, whatever memory was registered with: RemoteWrite, RemoteRead, RemoteAtomic, or several of them. If
	// the peer tries it, the connection ends by a Terminate: 0x1102 for a Write, 0x1201 for the others. Empty messages reach no memory, and so are
	// allowed. QP.Deny changes it.
	Deny Access
	// FPDUs says how FPDUs are placed in the segments of TCP. If zero, aligned with them, with
	// the exceptions that FPDUsDefault has.
	FPDUs FPDUs
	// Stream says what to ask for in markers and in the version of DDP and RDMAP.
	// CreateQP returns ErrVersion or ErrMarkersRequired for what the RNIC cannot do.
	// It takes effect when the QP is connected; until then QP.ModifyStream can change
	// it.
	Stream StreamAttr
	// Context is the program's own: QP.Context and WC.Context return it, and nothing else
	// looks at it.
	Context any
}

func (c *QPConfig) fill() error {
	c.SendDepth = orDefault(c.SendDepth, defaultDepth)
	c.RecvDepth = orDefault(c.RecvDepth, defaultDepth)
	c.MaxInline = max(orDefault(c.MaxInline, defaultMaxInline), 0)
	c.CloseTimeout = orDefault(c.CloseTimeout, 5*time.Second)
	c.CloseLimit = orDefault(c.CloseLimit, time.Minute)
	c.GapTimeout = orDefault(c.GapTimeout, time.Minute)
	c.Linger = orDefault(c.Linger, 100*time.Millisecond)
	c.Nudge = orDefault(c.Nudge, 10*time.Millisecond)
	c.Unready.fill()
	switch {
	case c.SendDepth < 0 || c.SendDepth > MaxQueueDepth || c.RecvDepth < 0 || c.RecvDepth > MaxQueueDepth:
		return fmt.Errorf("%w: SendDepth %d and RecvDepth %d must be 1 to %d", ErrInvalid, c.SendDepth, c.RecvDepth, MaxQueueDepth)
	case c.CloseTimeout < 0:
		return fmt.Errorf("%w: QPConfig.CloseTimeout is %v, and is to be positive, or 0 for 5 s", ErrInvalid, c.CloseTimeout)
	case c.IdleTimeout < 0:
		return fmt.Errorf("%w: QPConfig.IdleTimeout is %v, and is to be positive, or 0 for none", ErrInvalid, c.IdleTimeout)
	case c.UserTimeout < 0:
		return fmt.Errorf("%w: QPConfig.UserTimeout is %v, and is to be positive, or 0 for the system's", ErrInvalid, c.UserTimeout)
	case c.MaxInline > MaxInline:
		return fmt.Errorf("%w: a MaxInline of %d octets; %d at most", ErrInvalid, c.MaxInline, MaxInline)
	case c.Unready.Octets < 0 || c.Unready.Messages < 0:
		return fmt.Errorf("%w: QPConfig.Unready is %+v, and is to be positive, or 0", ErrInvalid, c.Unready)
	case c.Deny&^deniable != 0:
		return errDeny(c.Deny)
	case c.FPDUs > FPDUsLarge:
		return fmt.Errorf("%w: QPConfig.FPDUs is %d, and is to be one of FPDUsDefault (%d) to FPDUsLarge (%d)", ErrInvalid, c.FPDUs, FPDUsDefault, FPDUsLarge)
	}
	return nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// Negotiated is what the startup agreed on for a connection. Over SCTP, and any other SegmentStream, there is no MPA:
// Revision, PeerRevision, the markers and CRC are zero, and neither String nor JSON has them.
type Negotiated struct {
	mpa.Negotiated
	// EMSS is TCP's effective maximum segment size, 0 where there is none, and MULPDU the
	// largest ULPDU that is sent, both in octets and as they were at the start.
	EMSS, MULPDU int
	// RTT is how long an Initiator waited for the answer to its startup frame: no less
	// than a round trip on the path. It is 0 where that is not known.
	RTT time.Duration
	// FellBack tells that the peer refused a revision 2 Request, and that this is a
	// second connection, with revision 1. FallbackReason is how the first one failed.
	FellBack       bool
	FallbackReason error
	// Opener is the kind of empty message that we sent first after a fallback, although
	// revision 1 negotiates none: it lets the peer send before our consumer does.
	Opener mpa.RTR

	noMPA bool // the connection is over a SegmentStream
}

// A QP is a Queue Pair: one end of a connection, with a Send Queue for Sends, Writes and
// Reads, and a Receive Queue. PD.CreateQP makes one; Dialer and Request also make one
// while they connect.
//
// A QP exists until its program calls Close or Abort, also when its connection has ended by
// itself: Done tells of that.
type QP struct {
	rnic    *RNIC
	pd      *PD
	num     uint32
	callers atomic.Int32 // calls as Read that wait, and do not receive for themselves
	cfg     QPConfig
	sendCQ  *CQ
	recvCQ  *CQ
	uses    [2]cqUse // of the Send Queue's CQ, and of the other's, if that is another

	// Completions of the two queues that were not polled yet: their requests still
	// occupy entries.
	unpolledSends, unpolledRecvs atomic.Int64
	srqHeld                      srqHeld // with an SRQ, in place of unpolledRecvs

	mu                      sync.Mutex // guards what follows
	eng                     *engine.QP
	attr                    StreamAttr // for the next connection
	conn                    *tcp.Conn  // nil when there is none, or another link
	link                    link       // nil when there is none
	ends                    ends       // of the link
	listener                *Listener  // that the connection came by, if it did
	connecting              bool       // by a Dialer or a Request
	closing                 bool       // Close or BeginClose was called, of this connection
	writing                 bool       // someone is sending, and sends what is queued too
	handed                  bool       // that is to be the sending goroutine
	sender                  bool       // there is a sending goroutine
	destroyed               bool
	closingLLP              bool      // it is being closed
	closedLLP               bool      // the socket is closed
	farewell                farewell  // of this connection
	finSent                 bool      // on this connection
	slack                   bool      // the RNIC's trimmer has the QP
	asks                    bool      // TCP is to be asked for quietBy
	holds                   holding   // not guarded: who creates the QP, or releases it, is alone
	boundTo                 uint32    // what regions bound to the QP are bound to: this connection, or the next
	sendFn                  func()    // that is it: send
	pushed                  time.Time // when the last post was sent
	wrote                   time.Time // when the last write was over
	streak                  int       // posts that followed each other quickly
	batch                   int       // posts that are queued until there are more
	batched                 int       // octets of them
	sendCalls, receiveCalls uint64
	allSent                 uint64    // octets of the stream, when TCP had last none that it had not sent
	quietBy                 time.Time // the end of the wait before the FIN for which TCP was asked that
	gather                  *engine.Gather
	timer                   deadline.Timer[QP]
	segments                segments
	neg                     *Negotiated   // nil: there was no connection yet
	done                    chan struct{} // closed when the connection has ended
	journal                 journal       // what is to be logged
	watch                   watch
	lead                    lead
	room                    sync.Cond // of mu: the engine may take something in again

	orphans *orphans // of this connection; nil: there were none
	posts   *posting // nil: nothing was posted lately
}

func (qp *QP) engineConfig() engine.Config {
	c := engine.Config{
		SendDepth: qp.cfg.SendDepth, RecvDepth: qp.cfg.RecvDepth, MaxInline: qp.cfg.MaxInline,
		Memory:       memory.Domain{Table: qp.rnic.table, PD: qp.pd.num, Stream: qp.boundTo, Denied: memory.Access(qp.cfg.Deny)},
		CloseTimeout: qp.cfg.CloseTimeout, CloseLimit: qp.cfg.CloseLimit, Linger: qp.cfg.Linger, Nudge: qp.cfg.Nudge, StrictRTR: qp.cfg.StrictRTR, HalfClose: qp.cfg.HalfClose,
		GapTimeout: qp.cfg.GapTimeout, Unready: engine.Unready(qp.cfg.Unready), Confirm: qp.cfg.Confirm, Trace: qp.tracer(),
	}
	if qp.cfg.SRQ != nil {
		c.Source, c.SendTimeout = srqSource{qp.cfg.SRQ, qp}, max(qp.cfg.SRQ.sendTimeout, 0)
	}
	return c
}

// polled takes note that completions have left their CQ: their requests give up their
// entries. Those of one QP are counted together, as the other goroutines that count share the counters.
func polled(wc []WC) {
	for len(wc) > 0 {
		qp, n := wc[0].QP, 1
		for n < len(wc) && wc[n].QP == qp {
			n++
		}
		qp.polled(wc[:n])
		wc = wc[n:]
	}
}

func (qp *QP) polled(wc []WC) {
	var sends, recvs int64
	for i := range wc {
		switch {
		case wc[i].Op != OpRecv:
			sends++
		case qp.cfg.SRQ == nil:
			recvs++
		case qp.srqHeld.giveBack(wc[i].connection):
			qp.cfg.SRQ.out.Add(-1)
		}
	}
	if sends > 0 {
		qp.unpolledSends.Add(-sends)
	}
	if recvs > 0 {
		qp.unpolledRecvs.Add(-recvs)
	}
}

// Num returns the QP's number, unique in its RNIC.
func (qp *QP) Num() uint32 { return qp.num }

// PD returns the QP's Protection Domain.
func (qp *QP) PD() *PD { return qp.pd }

// SendCQ returns the CQ of the Send Queue's completions.
func (qp *QP) SendCQ() *CQ { return qp.sendCQ }

// RecvCQ returns the CQ of the receives' completions.
func (qp *QP) RecvCQ() *CQ { return qp.recvCQ }

// State returns the QP's state.
func (qp *QP) State() State {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.state()
}

// state is the engine's, except for the end of a connection: to the RDMA verbs that is
// Idle, like a QP that never had one, and Closing until it is complete. The caller holds qp.mu.
func (qp *QP) state() State {
	switch s := State(qp.eng.State()); {
	case s == StateIdle && qp.closingLLP:
		return StateClosing
	case s == StateIdle && qp.closedLLP:
		return StateClosed
	default:
		return s
	}
}

// Negotiated returns what was agreed on for the present or last connection.
func (qp *QP) Negotiated() Negotiated {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.neg == nil {
		return Negotiated{}
	}
	return *qp.neg
}

// Err says why the connection ended, or is about to end in error: nil if it has not. It
// is a *TerminateError or a *ConnectionError and wraps ErrClosed. After an orderly end it
// wraps ErrPeerClosed if the peer was the first to close.
func (qp *QP) Err() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch s := qp.state(); {
	case s == StateIdle || s == StateRTS || s == StateClosing:
		return nil
	case qp.link == nil && errors.Is(qp.eng.Cause(), errReleased):
		return nil // there was none
	}
	return publicError(qp.eng.Cause())
}

// Done is closed when the connection has ended and all work is flushed, and when
// the QP is closed without having had one. When it is connected again, Done returns
// another channel.
func (qp *QP) Done() <-chan struct{} {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.done
}
