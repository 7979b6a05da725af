package iwarp

import (
	"errors"
	"fmt"
	"net"
	"sync"
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
	ownCQ  *CQ

	mu        sync.Mutex // guards what follows
	eng       *engine.QP
	conn      *tcp.Conn // nil when there is none
	writing   bool      // someone is sending: what is queued goes along
	gather    *engine.Gather
	timer     *time.Timer
	timerAt   time.Time
	refresh   uint64 // octets sent at which to ask for the EMSS again
	neg       Negotiated
	done      chan struct{} // closed when the connection has ended
	destroyed bool
	closedLLP bool // the socket is closed

	sendWork engine.SendWork // scratch of PostSend
	recvWork engine.RecvWork
}

// CreateQP returns a QP in state Idle. Receives may be posted to it before it
// is connected, and must be if the peer sends first.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	if err := cfg.fill(); err != nil {
		return nil, &OpError{Op: "create QP", Err: err}
	}
	if cfg.SRQ != nil && cfg.SRQ.pd != pd {
		return nil, &OpError{Op: "create QP", Err: fmt.Errorf("%w: SRQ of another Protection Domain", ErrInvalid)}
	}
	qp := &QP{rnic: pd.rnic, pd: pd, cfg: cfg, done: make(chan struct{})}
	if err := pd.rnic.add(qp); err != nil {
		return nil, &OpError{Op: "create QP", Err: err}
	}
	if err := qp.takeCQs(); err != nil {
		pd.rnic.remove(qp)
		return nil, &OpError{Op: "create QP", Err: err}
	}
	qp.eng = engine.New(qp.engineConfig())
	pd.rnic.table.AddStream(pd.num)
	return qp, nil
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
		qp.cfg.SRQ.attach()
	}
	return c
}

// takeCQs settles which CQs the QP uses.
func (qp *QP) takeCQs() (err error) {
	qp.sendCQ, qp.recvCQ = qp.cfg.SendCQ, qp.cfg.RecvCQ
	switch {
	case qp.sendCQ == nil && qp.recvCQ == nil:
		qp.ownCQ, err = qp.rnic.CreateCQ(qp.cfg.SendDepth + qp.cfg.RecvDepth)
		qp.sendCQ, qp.recvCQ = qp.ownCQ, qp.ownCQ
	case qp.sendCQ == nil:
		qp.sendCQ = qp.recvCQ
	case qp.recvCQ == nil:
		qp.recvCQ = qp.sendCQ
	}
	if err != nil {
		return err
	}
	if qp.sendCQ.rnic != qp.rnic || qp.recvCQ.rnic != qp.rnic {
		return fmt.Errorf("%w: CQ of another RNIC", ErrInvalid)
	}
	qp.sendCQ.attach(qp)
	qp.recvCQ.attach(qp)
	return nil
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

// Err says why the connection ended: nil if it has not, or ended in order.
func (qp *QP) Err() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return publicError(qp.eng.Cause())
}

// Done is closed when the connection has ended and all work is flushed. After a
// later Connect, Done returns another channel.
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

// Modify carries out a transition of the RDMA verbs (section 6.2) that the
// consumer may ask for: RTS to Closing (without draining: work under way makes
// it a bad close), RTS to Terminate, RTS or Idle to Error, Error to Idle.
func (qp *QP) Modify(to State) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.eng.Modify(time.Now(), engine.State(to)); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	qp.push()
	return nil
}

// CloseWrite closes our half of the connection: no more work is taken, what was
// posted is carried out, then a FIN is sent. Receiving goes on until the peer
// closes its half. A Read that the peer asks for after that is an error.
func (qp *QP) CloseWrite() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.eng.State() != engine.RTS {
		return &OpError{Op: "close write", Err: ErrBadState}
	}
	qp.eng.BeginHalfClose(time.Now())
	qp.push()
	return nil
}

// Close ends the connection in order: no more work is taken, what was posted is
// carried out, the peer's Reads are answered, then both halves are closed. It
// returns when that is done, or when the peer has not played its part for
// CloseTimeout, and releases the QP.
func (qp *QP) Close() error {
	qp.mu.Lock()
	connected := qp.conn != nil
	qp.eng.BeginClose(time.Now())
	qp.push()
	done := qp.done
	qp.mu.Unlock()
	if connected {
		qp.awaitEnd(done)
	}
	qp.destroy()
	if err := qp.Err(); errors.Is(err, ErrConnectionLost) {
		return &OpError{Op: "close", Addr: qp.RemoteAddr(), Err: err}
	}
	return nil
}

func (qp *QP) awaitEnd(done <-chan struct{}) {
	t := time.NewTimer(2 * qp.cfg.CloseTimeout)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		_ = qp.abort(fmt.Errorf("work was not finished within %v: %w", 2*qp.cfg.CloseTimeout, ErrConnectionLost))
	}
}

// Abort ends the connection at once (RST), flushes all work and releases the QP.
func (qp *QP) Abort() error {
	err := qp.abort(errors.New("aborted by the consumer"))
	qp.destroy()
	return err
}

// fail ends the connection because of something outside it.
func (qp *QP) fail(cause error) { _ = qp.abort(cause) }

func (qp *QP) abort(cause error) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.eng.Abort(cause)
	qp.push()
	return nil
}

// destroy releases what the QP holds of others.
func (qp *QP) destroy() {
	qp.mu.Lock()
	if qp.destroyed {
		qp.mu.Unlock()
		return
	}
	qp.destroyed = true
	if qp.eng.State() == engine.Idle {
		qp.eng.Abort(ErrClosed)
		qp.deliver()
	}
	qp.mu.Unlock()
	qp.rnic.table.RemoveStream(qp.pd.num)
	qp.rnic.remove(qp)
	qp.sendCQ.detach(qp)
	qp.recvCQ.detach(qp)
	if qp.cfg.SRQ != nil {
		qp.cfg.SRQ.detach(qp)
	}
}
