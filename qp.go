package iwarp

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	// StateClosing: the connection is being closed in order.
	StateClosing = State(engine.Closing)
)

// String names the state as the RDMA verbs do.
func (s State) String() string { return engine.State(s).String() }

// Bounds and defaults of queues.
const (
	MaxQueueDepth    = 1 << 16 // entries
	MaxInline        = 4 << 10 // octets
	defaultDepth     = 128     // entries
	defaultMaxInline = 256     // octets
)

// QPConfig configures a Queue Pair. The zero value will do.
type QPConfig struct {
	// SendCQ and RecvCQ get the completions. If both are nil the QP gets one CQ of
	// its own for both, large enough for all that can be outstanding; if one is
	// nil, the other serves both queues.
	SendCQ, RecvCQ *CQ
	// SRQ serves the receives instead of a queue of the QP's own.
	SRQ *SRQ
	// SendDepth and RecvDepth are the entries of the queues, at most
	// MaxQueueDepth. If zero, 128.
	SendDepth, RecvDepth int
	// MaxInline bounds inline data, in octets, at most the constant MaxInline. If
	// zero, 256; if negative, none.
	MaxInline int
	// CloseTimeout bounds the wait for the peer's side of a close. If zero, 5 s.
	CloseTimeout time.Duration
	// Nudge is how long an Initiator that has heard nothing after its first FPDU
	// waits before it sends a zero-length RDMA Write to wake up a peer that may
	// have missed it: Linux's siw does, now and then. If zero, 10 ms; if negative,
	// never. No peer's consumer notices.
	Nudge time.Duration
	// StrictRTR refuses a peer-to-peer Initiator whose first message is not the
	// Ready-to-Receive indication that was agreed on. By default that is tolerated.
	StrictRTR bool
	// HalfClose leaves our direction open when the peer has closed its own, until
	// Close. By default, as with the RDMA verbs, the connection closes when what
	// was posted is finished.
	HalfClose bool
	// Stream is what is asked of markers and of the DDP and RDMAP version. CreateQP
	// returns ErrVersion or ErrMarkersRequired for what the RNIC cannot do. It takes
	// effect when the QP is connected; until then QP.ModifyStream changes it. [V02]
	Stream StreamAttr
}

func (c *QPConfig) fill() error {
	c.SendDepth = orDefault(c.SendDepth, defaultDepth)
	c.RecvDepth = orDefault(c.RecvDepth, defaultDepth)
	c.MaxInline = max(orDefault(c.MaxInline, defaultMaxInline), 0)
	c.CloseTimeout = orDefault(c.CloseTimeout, 5*time.Second)
	c.Nudge = orDefault(c.Nudge, 10*time.Millisecond)
	switch {
	case c.SendDepth < 0 || c.SendDepth > MaxQueueDepth || c.RecvDepth < 0 || c.RecvDepth > MaxQueueDepth:
		return fmt.Errorf("%w: queue depths %d and %d", ErrInvalid, c.SendDepth, c.RecvDepth)
	case c.MaxInline > MaxInline:
		return fmt.Errorf("%w: %d octets of inline data", ErrInvalid, c.MaxInline)
	}
	return nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// Negotiated is what a connection runs with.
type Negotiated struct {
	mpa.Negotiated
	// EMSS is TCP's effective maximum segment size and MULPDU the largest ULPDU
	// sent, in octets, at the start.
	EMSS, MULPDU int
	// FellBack: the peer did not answer a revision 2 Request, and this is the
	// second connection, with revision 1. FallbackReason is how the first failed.
	FellBack       bool
	FallbackReason error
}

// A QP is a Queue Pair: one end of a connection, and its queues: the Send Queue,
// to which Sends, Writes and Reads are posted, and the Receive Queue. It is
// created by a PD, or on the way by a Dialer or a Request.
type QP struct {
	rnic   *RNIC
	pd     *PD
	num    uint32
	cfg    QPConfig
	sendCQ *CQ
	recvCQ *CQ
	held   []func() // give back what the QP holds of others, in reverse order

	// Completions of the two queues that were not polled yet: their requests
	// still keep their places.
	unpolledSends, unpolledRecvs atomic.Int64

	calls sync.Pool // of *call

	mu         sync.Mutex // guards what follows
	eng        *engine.QP
	attr       StreamAttr // for the next connection
	conn       *tcp.Conn  // nil when there is none
	connecting bool       // by a Dialer or a Request
	writing    bool       // someone is sending: what is queued goes along
	gather     *engine.Gather
	timer      *time.Timer
	timerAt    time.Time
	refresh    uint64 // octets sent at which to ask for the EMSS again
	neg        Negotiated
	done       chan struct{} // closed when the connection has ended
	destroyed  bool
	closedLLP  bool // the socket is closed

	sendWork engine.SendWork // scratch of PostSend
	inline   []byte
	recvWork engine.RecvWork
}

// CreateQP returns a QP in state Idle. Receives may be posted to it before it
// is connected, and must be if the peer sends first.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	qp := &QP{rnic: pd.rnic, pd: pd, cfg: cfg, attr: cfg.Stream, done: make(chan struct{})}
	if err := qp.acquire(); err != nil {
		return nil, &OpError{Op: "create QP", Err: err}
	}
	return qp, nil
}

// acquire takes all that a QP needs of others, or nothing.
func (qp *QP) acquire() error {
	if err := qp.cfg.fill(); err != nil {
		return err
	}
	if err := qp.attr.check(qp.rnic.kind); err != nil {
		return err
	}
	for _, take := range []func() error{qp.enterPD, qp.takeShares, qp.takeCQs, qp.takeSRQ, qp.enroll} {
		if err := take(); err != nil {
			qp.release()
			return err
		}
	}
	return nil
}

func (qp *QP) hold(giveBack func()) { qp.held = append(qp.held, giveBack) }

func (qp *QP) release() {
	for _, giveBack := range slices.Backward(qp.held) {
		giveBack()
	}
	qp.held = nil
}

func (qp *QP) enterPD() error {
	if err := qp.pd.attach(); err != nil {
		return err
	}
	qp.hold(qp.pd.detach)
	qp.num = qp.rnic.number()
	qp.rnic.table.AddStream(qp.pd.num)
	qp.hold(func() { qp.rnic.table.RemoveStream(qp.pd.num) })
	return nil
}

func (qp *QP) takeShares() error {
	entries := qp.cfg.SendDepth
	if qp.cfg.SRQ == nil {
		entries += qp.cfg.RecvDepth
	}
	shares := []share{{resQP, 1}, {resWR, entries}}
	if err := qp.rnic.ledger.take(shares...); err != nil {
		return err
	}
	qp.hold(func() { qp.rnic.ledger.give(shares...) })
	return nil
}

// takeCQs settles which CQs the QP uses.
func (qp *QP) takeCQs() (err error) {
	qp.sendCQ, qp.recvCQ = qp.cfg.SendCQ, qp.cfg.RecvCQ
	switch {
	case qp.sendCQ == nil && qp.recvCQ == nil:
		if qp.sendCQ, err = qp.ownCQ(); err != nil {
			return err
		}
		qp.recvCQ = qp.sendCQ
	case qp.sendCQ == nil:
		qp.sendCQ = qp.recvCQ
	case qp.recvCQ == nil:
		qp.recvCQ = qp.sendCQ
	}
	if err := qp.tie(qp.sendCQ); err != nil {
		return err
	}
	return qp.tie(qp.recvCQ)
}

// ownCQ creates a CQ for one that was not given any. It ends with the QP, unless
// the consumer has given it to others.
func (qp *QP) ownCQ() (*CQ, error) {
	depth := qp.cfg.SendDepth + qp.cfg.RecvDepth
	if qp.cfg.SRQ != nil {
		depth = qp.cfg.SendDepth + len(qp.cfg.SRQ.slots)
	}
	cq, err := qp.rnic.CreateCQ(depth)
	if err == nil {
		qp.hold(func() { _ = cq.Close() })
	}
	return cq, err
}

func (qp *QP) tie(cq *CQ) error {
	if err := cq.attach(qp); err != nil {
		return err
	}
	qp.hold(func() { cq.detach(qp) })
	return nil
}

func (qp *QP) takeSRQ() error {
	srq := qp.cfg.SRQ
	if srq == nil {
		return nil
	}
	if err := srq.attach(qp); err != nil {
		return err
	}
	qp.hold(func() { srq.detach(qp) })
	return nil
}

// enroll makes the QP known.
func (qp *QP) enroll() error {
	qp.eng = engine.New(qp.engineConfig())
	if err := qp.rnic.enroll(qp); err != nil {
		return err
	}
	qp.hold(func() { qp.rnic.remove(qp) })
	return nil
}

func (qp *QP) engineConfig() engine.Config {
	c := engine.Config{
		SendDepth: qp.cfg.SendDepth, RecvDepth: qp.cfg.RecvDepth, MaxInline: qp.cfg.MaxInline,
		Memory:       memory.Domain{Table: qp.rnic.table, PD: qp.pd.num, Stream: qp.num},
		CloseTimeout: qp.cfg.CloseTimeout, Nudge: qp.cfg.Nudge, StrictRTR: qp.cfg.StrictRTR, HalfClose: qp.cfg.HalfClose,
		Trace: qp.tracer(),
	}
	if qp.cfg.SRQ != nil {
		c.Source = srqSource{qp.cfg.SRQ, qp}
	}
	return c
}

// polled says that a completion has left its CQ.
func (qp *QP) polled(op Op) {
	switch {
	case op != OpRecv:
		qp.unpolledSends.Add(-1)
	case qp.cfg.SRQ != nil:
		qp.cfg.SRQ.out.Add(-1)
	default:
		qp.unpolledRecvs.Add(-1)
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
	return State(qp.eng.State())
}

// Negotiated returns what the connection runs, or ran, with.
func (qp *QP) Negotiated() Negotiated {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.neg
}

// Err says why the connection ended: nil if it has not, or ended in order. It is
// a *TerminateError or a *ConnectionError, and wraps net.ErrClosed.
func (qp *QP) Err() error {
	err := qp.cause()
	if errors.Is(err, errReleased) {
		return nil
	}
	return err
}

// cause is why work is flushed or refused.
func (qp *QP) cause() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return publicError(qp.eng.Cause())
}

// Done is closed when the connection has ended and all work is flushed, and when
// the QP is closed without having had one. After a later Connect, Done returns
// another channel.
func (qp *QP) Done() <-chan struct{} {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.done
}

// LocalAddr returns our address, or nil before there is a connection.
func (qp *QP) LocalAddr() net.Addr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.conn == nil {
		return nil
	}
	return qp.conn.LocalAddr()
}

// RemoteAddr returns the peer's address, or nil before there is a connection.
func (qp *QP) RemoteAddr() net.Addr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.conn == nil {
		return nil
	}
	return qp.conn.RemoteAddr()
}
