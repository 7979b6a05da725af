package iwarp

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Send sends one message and returns when the lower layer (TCP, or SCTP) has taken it. PostSend queues the request and
// returns. In StateIdle, Send waits for a connection until the context or the QP ends. If the Send Queue is full, calls
// and Submits wait for room, in the order in which they began.
//
// If the context ends first, the error is a *PendingError. If it ends while the call waits for room in the queue, or
// has ended before, nothing is posted, and the error is an *OpError. The connection comes up after Prepare: a call that
// has waited for 1 s while Prepare runs fails with an error that wraps ErrBadState, in any goroutine. All this holds
// for the other calls here, too.
func (qp *QP) Send(ctx context.Context, s SGE) error {
	_, err := qp.do(ctx, s, SendWR{Op: OpSend})
	return err
}

// Write places the bytes of s in the peer's memory. It returns their number when the lower layer has taken them. The
// peer is not notified; send it a message for that.
func (qp *QP) Write(ctx context.Context, s SGE, to Remote) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpWrite, Remote: to})
	return wc.Length, err
}

// Read fetches s.Length bytes of the peer's memory into s. It returns their number when they have arrived.
func (qp *QP) Read(ctx context.Context, s SGE, from Remote) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpRead, Remote: from})
	return wc.Length, err
}

// Recv posts a receive and waits for the message, whose length is in the WC. Most programs want [QP.Receive].
//
// A message that arrives before this call, or between two, finds no receive. It ends the connection, unless
// QPConfig.RNR makes it wait. This happens even in strict request/response. So without RNR, Recv fails with
// ErrRiskyRecv while the connection is up and no receive is posted.
//
// If the context ends first, the receive is withdrawn. If a message has begun to fill it by then, the error is a
// *PendingError. The next Recv returns that message before any later one. It is kept until the QP is made ready for
// another connection, or has one.
func (qp *QP) Recv(ctx context.Context, s SGE) (WC, error) {
	if err := qp.made(); err != nil {
		return WC{}, err
	}
	if err := contextError(ctx); err != nil {
		return WC{}, &OpError{Op: "receive", Err: err}
	}
	if c := qp.abandoned.pop(qp); c != nil {
		return c.awaitMessage(ctx, s)
	}
	if err := riskyRecv(qp); err != nil {
		return WC{}, &OpError{Op: "receive", Err: err}
	}
	c := newCall(qp, s)
	c.recv = RecvWR{SGL: c.sgl[:]}
	if err := qp.postRecv(&c.recv, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx, OpRecv)
}

// A PendingError is the error of a call, such as Send, Recv, Write or Read, whose wait ended while its request was
// under way. The request is still carried out, and its memory belongs to the QP until then. [Pending.Wait] has no such
// error: call it again.
type PendingError struct {
	Op Op
	// Free is closed when the request is complete, with or without success: the memory is the caller's again.
	Free <-chan struct{}
	// Err says why: the context's error, ErrHeldBack, or ErrBadState during Prepare. It also wraps ErrAwaitingInitiator
	// if nothing of the request was sent because of that.
	Err error
}

// Error says what was given up, and why.
func (e *PendingError) Error() string {
	return fmt.Sprintf("iwarp: %v given up, and still under way: %v", e.Op, e.Err)
}

// Unwrap returns Err.
func (e *PendingError) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline has passed.
func (e *PendingError) Timeout() bool { return isTimeout(e.Err) }

// Temporary is there for net.Error. It reports false.
func (e *PendingError) Temporary() bool { return false }

// Is reports a timeout as os.ErrDeadlineExceeded.
func (e *PendingError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded && e.Timeout()
}

var _ net.Error = (*PendingError)(nil)

// do posts a request, with s as its memory if it has any, and waits for its completion. That does not go to the CQ.
func (qp *QP) do(ctx context.Context, s SGE, wr SendWR) (WC, error) {
	if err := qp.made(); err != nil {
		return WC{}, err
	}
	if err := contextError(ctx); err != nil {
		return WC{}, &OpError{Op: wr.Op.call(), Err: err}
	}
	c := newCall(qp, s)
	c.send = wr
	if info := engine.Op(wr.Op).Info(); info.MaxSGE > 0 && info.Result == 0 {
		c.send.SGL = c.sgl[:]
	}
	if err := qp.room.post(ctx, &c.send, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx, wr.Op)
}

// A call is a request whose caller waits for the completion. It has the request's memory, so a call allocates nothing.
type call struct {
	qp   *QP
	done chan WC
	turn chan struct{} // to try again after the Send Queue was full
	sgl  [1]SGE
	send SendWR
	recv RecvWR

	leader *driver.Conn // connection that the caller receives on, or nil. Guarded by qp.mu

	// Of an abandoned call, guarded by qp.mu.
	given   chan struct{}  // closed when the request is complete; nil: not abandoned
	among   abandonedRecvs // those of its connection
	wc      WC             // its completion
	message []byte         // of a receive
}

// newCall takes a call from the RNIC's pool. A global pool would mix testing/synctest bubbles, which must not share
// channels.
func newCall(qp *QP, s SGE) *call {
	c, ok := qp.rnic.calls.Get().(*call)
	if !ok {
		c = &call{done: make(chan WC, 1), turn: make(chan struct{}, 1)}
	}
	c.qp, c.sgl[0] = qp, s
	return c
}

func (c *call) free() {
	pool := &c.qp.rnic.calls
	c.qp, c.sgl[0], c.send, c.recv = nil, SGE{}, SendWR{}, RecvWR{}
	pool.Put(c)
}

// await waits for the completion, or gives up with the context.
func (c *call) await(ctx context.Context, op Op) (WC, error) {
	wc, err := c.wait(ctx, op)
	if err != nil {
		return c.orGiveUp(op, err)
	}
	return c.completed(wc)
}

// wait waits for the completion.
func (c *call) wait(ctx context.Context, op Op) (WC, error) {
	if p := c.qp.preparing.Load(); p != nil {
		if err := awaitPrepared(ctx, *p); err != nil {
			return WC{}, err
		}
	}
	if conn := c.qp.conn.Load(); conn != nil && len(c.done) == 0 {
		conn.ReceiveFor(ctx, c)
	}
	if len(c.done) == 0 {
		c.qp.callers.Add(1)
		defer c.qp.callers.Add(-1)
		upcalls{c.qp}.rearmReads()
	}
	return c.awaitDone(ctx, op)
}

// prepareWait bounds the wait of a call for the end of Prepare. A call in Prepare itself would never end.
const prepareWait = time.Second

var errInPrepare = fmt.Errorf("%w: Prepare has not returned, and the connection comes up after it: use PostSend and "+
	"PostRecv in Prepare", ErrBadState)

// awaitPrepared waits until Prepare has returned.
func awaitPrepared(ctx context.Context, returned <-chan struct{}) error {
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
		return deadline.ContextError(ctx)
	case <-time.After(prepareWait):
		return errInPrepare
	}
}

// orGiveUp returns the completion if it has arrived, and otherwise gives up because of err.
func (c *call) orGiveUp(op Op, err error) (WC, error) {
	if err := c.giveUp(op, err); err != nil {
		return WC{}, err
	}
	return c.completed(<-c.done)
}

func (c *call) completed(wc WC) (WC, error) {
	c.free()
	return wc, wc.Err()
}

// giveUp withdraws the receive, or returns a PendingError. It returns nil if the completion has arrived.
func (c *call) giveUp(op Op, err error) error {
	qp := c.qp
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if len(c.done) > 0 {
		return nil
	}
	taken, mute := c.takeBack()
	idle := qp.status().state == StateIdle
	switch {
	case op == OpRecv && taken:
		c.free()
		return &OpError{Op: "receive", Err: fmt.Errorf("%s: %w", lacksMessage(idle), err)}
	case op == OpRecv:
		c.among = qp.abandoned.add(c)
	case mute:
		err = fmt.Errorf("%w: %w", engine.ErrMute, err)
	case idle:
		err = fmt.Errorf("the QP waits for a connection: %w", err)
	}
	c.given = make(chan struct{})
	return &PendingError{Op: op, Free: c.given, Err: err}
}

// takeBack withdraws a receive that no message has begun to fill. mute reports that requests wait for the Initiator's
// first FPDU. The caller holds qp.mu.
func (c *call) takeBack() (taken, mute bool) {
	qp := c.qp
	switch conn := qp.conn.Load(); {
	case conn != nil:
		return conn.TakeBackReceive(c)
	case qp.machine != nil:
		return qp.machine.TakeBackReceive(c), false
	}
	return false, false
}

// lacksMessage says why a receive has no message.
func lacksMessage(idle bool) string {
	if idle {
		return "the QP has no connection"
	}
	return "no message has come"
}

// complete takes the completion, and reports whether a caller waited for it. The caller of complete holds qp.mu.
func (c *call) complete(wc WC) (waited bool) {
	if c.given == nil {
		leader := c.leader
		c.done <- wc // from here c belongs to its caller
		if leader != nil {
			leader.Interrupt()
		}
		return true
	}
	switch c.wc = wc; {
	case wc.Op != OpRecv:
	case wc.Status == StatusSuccess:
		c.keep()
	default: // no message to keep
		*c.among.of = slices.DeleteFunc(*c.among.of, func(o *call) bool { return o == c })
	}
	close(c.given)
	return false
}

// Sleep reports whether the completion is missing: the caller then receives by itself until it arrives.
func (c *call) Sleep(on *driver.Conn) bool {
	c.qp.mu.Lock()
	defer c.qp.mu.Unlock()
	if len(c.done) > 0 {
		return false
	}
	c.leader = on
	on.Announce()
	return true
}

// Awake notes that the caller has stopped receiving.
func (c *call) Awake() {
	c.qp.mu.Lock()
	c.leader = nil
	c.qp.mu.Unlock()
}

// keep copies the message of an abandoned receive, whose memory is the caller's from now on.
func (c *call) keep() {
	s := &c.sgl[0]
	if s.MR != nil {
		c.message = make([]byte, c.wc.Length)
		_, _ = s.MR.region.ReadAt(c.message, s.Offset)
	}
}

// abandonedRecvs are one connection's receives that were abandoned with a message in them, the oldest first. A QP that
// is connected again has others: an old message must not pass for the new peer's. QP.mu guards them.
type abandonedRecvs struct{ of *[]*call } // nil: none so far

// add keeps an abandoned receive for the next Recv.
func (a *abandonedRecvs) add(c *call) abandonedRecvs {
	if a.of == nil {
		a.of = new([]*call)
	}
	*a.of = append(*a.of, c)
	return *a
}

// pop returns the oldest abandoned receive with a message, or nil.
func (a *abandonedRecvs) pop(qp *QP) *call {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if a.of == nil || len(*a.of) == 0 {
		return nil
	}
	c := (*a.of)[0]
	*a.of = slices.Delete(*a.of, 0, 1)
	return c
}

// putBack returns an abandoned receive to the front of the queue.
func (c *call) putBack() {
	c.qp.mu.Lock()
	defer c.qp.mu.Unlock()
	*c.among.of = slices.Insert(*c.among.of, 0, c)
}

// awaitMessage waits for the message of an abandoned receive, and copies it to s.
func (c *call) awaitMessage(ctx context.Context, s SGE) (WC, error) {
	select {
	case <-c.given:
	case <-ctx.Done():
		c.putBack()
		return WC{}, &OpError{Op: "receive", Err: deadline.ContextError(ctx)}
	}
	if err := c.wc.Err(); err != nil {
		return c.wc, err
	}
	if err := c.copyTo(s); err != nil {
		c.putBack()
		return WC{}, &OpError{Op: "receive", Err: err}
	}
	return c.wc, nil
}

func (c *call) copyTo(s SGE) error {
	if len(c.message) > s.Length {
		return fmt.Errorf("%w: the message kept has %s and does not fit %d: use a larger buffer", ErrInvalid,
			wording.Bytes(len(c.message)), s.Length)
	}
	if err := (sgeValidator{pd: c.qp.pd}).check(&s, true); err != nil {
		return err
	}
	if len(c.message) == 0 {
		return nil
	}
	switch f := s.MR.region.WriteAt(c.message, s.Offset); f {
	case memory.None:
		return nil
	case memory.Bounds:
		return fmt.Errorf("%w: %s", ErrInvalid, s.mistake(f))
	default:
		return s.MR.lost(f)
	}
}
