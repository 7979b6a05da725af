package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
)

// State is the state of a QP.
type State uint8

const (
	// StateIdle: no connection. Work can be posted; it waits.
	StateIdle State = State(engine.Idle)
	// StateRTS, Ready to Send: the connection is up.
	StateRTS State = State(engine.RTS)
	// StateTerminate: the connection ends because of an error, see Err.
	StateTerminate State = State(engine.Terminate)
	// StateError: the connection is gone and all work flushed.
	StateError State = State(engine.Error)
	// StateClosing: Modify closes the connection, without draining it.
	StateClosing State = State(engine.Closing)
	// StateClosed: the connection has ended in order. The QP can be connected again at once. To the RDMA verbs this is
	// Idle.
	StateClosed = StateClosing + 1
)

// String names the state as the RDMA verbs do.
func (s State) String() string {
	if s == StateClosed {
		return "Closed"
	}
	return engine.State(s).String()
}

// A claim says who may give the QP a connection.
type claim uint8

const (
	unclaimed claim = iota
	claimed         // an attempt of a Dialer or a Request, or one of ModifyRTS
	released        // nobody: the QP is closed
)

// A status says how far a QP's connection is.
type status struct {
	state    State
	closing  bool // Close was called
	leaving  bool // the connection has ended but for the lower layer
	cause    error
	lingered bool // our direction ended by itself, after the peer's
}

// status returns the status at this moment. To the RDMA verbs the end of a connection is Idle, like a QP that never had
// one, and Closing until it is complete. The caller holds qp.mu.
func (qp *QP) status() status {
	if c := qp.conn.Load(); c != nil {
		s := c.Status()
		st := status{
			state: State(s.State), closing: s.Phase != driver.Open, leaving: s.Phase >= driver.Leaving,
			cause: s.Cause, lingered: s.Lingered,
		}
		if st.state == StateIdle {
			st.state = StateClosing
		}
		return st
	}
	if e := qp.ended; e != nil {
		st := status{state: State(e.State), cause: e.Cause, lingered: e.Lingered}
		if st.state == StateIdle {
			st.state = StateClosed
		}
		return st
	}
	return status{state: StateIdle}
}

// State returns the QP's state.
func (qp *QP) State() State {
	if qp.made() != nil {
		return 0
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.status().state
}

// Err says why the connection ended, or is about to end in error: nil if it has not. It
// is a *TerminateError, a *ConnectionError or an *UnreadError, and wraps ErrClosed. After an orderly end it
// wraps ErrPeerClosed if the peer was the first to close.
func (qp *QP) Err() error {
	if err := qp.made(); err != nil {
		return err
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return errOf(qp)
}

// errOf is Err. The caller holds qp.mu.
func errOf(qp *QP) error {
	switch s := qp.status(); {
	case s.state == StateIdle || s.state == StateRTS || s.state == StateClosing:
		return nil
	case errors.Is(s.cause, errReleased): // there was none
		return nil
	case qp.ended != nil:
		return qp.inbox.withUnread(qp.why, qp.ended)
	default:
		return publicError(s.cause)
	}
}

// Done is closed when the connection has ended and all work is flushed, and when
// the QP is closed without having had one. When it is connected again, Done returns
// another channel.
func (qp *QP) Done() <-chan struct{} {
	if qp.made() != nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.done
}

// Context returns a context that ends when Done is closed. Its cause ([context.Cause]) is Err as it was then, or wraps
// ErrClosed if there was no connection. When the QP is connected again, Context returns another.
func (qp *QP) Context() context.Context {
	if err := qp.made(); err != nil {
		return overFor(err)
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.ctx == nil {
		qp.ctx, qp.endCtx = context.WithCancelCause(context.Background())
		if isClosed(qp.done) {
			endContext(qp)
		}
	}
	return qp.ctx
}

// overFor returns a context that has ended, with a cause.
func overFor(cause error) context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(cause)
	return ctx
}

// endContext ends the context of the connection, if anybody has asked for it. The caller holds qp.mu.
func endContext(qp *QP) {
	if qp.endCtx != nil {
		qp.endCtx(cmp.Or(errOf(qp), error(errReleased)))
	}
}

// claimFor reserves the QP, in StateIdle, for one attempt to connect it.
func (qp *QP) claimFor() error {
	qp.mu.Lock()
	err := qp.connectable()
	if err == nil {
		qp.claim = claimed
	}
	again := err == nil && qp.inbox != nil && qp.ended != nil
	if again {
		qp.reset()
	}
	qp.mu.Unlock()
	if again {
		qp.inbox.restart()
	}
	return err
}

// connected returns the connection, also one that is just coming up: what it has brought may be known before the QP has
// it.
func connected(qp *QP) *driver.Conn {
	if c := qp.conn.Load(); c != nil {
		return c
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.conn.Load()
}

// connectable reports whether the QP may get a connection. The caller holds qp.mu.
func (qp *QP) connectable() error {
	s := qp.status()
	idle := s.state == StateIdle || s.state == StateClosed
	switch {
	case qp.claim == released:
		return qp.endedError()
	case idle && qp.claim == claimed:
		return fmt.Errorf("the QP is being connected already: %w", ErrBadState)
	case idle:
		return nil
	case s.state == StateClosing && s.leaving:
		return stillClosing(qp.endedError())
	}
	return cmp.Or(qp.endedError(), fmt.Errorf("the QP is in state %v: %w", s.state, ErrBadState))
}

// unclaim ends the attempt, whatever came of it.
func (qp *QP) unclaim() {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.claim == claimed {
		qp.claim = unclaimed
	}
}

// endedError is the error of a call that needs a connection, or one to come, where there is
// none any more; nil otherwise. The caller holds qp.mu.
func (qp *QP) endedError() error {
	switch s := qp.status(); {
	case (s.closing && s.state == StateRTS || s.state == StateClosing) && orderly(publicError(s.cause)):
		// whether in order, the end will tell
		return &endedError{state: s.state, peer: errors.Is(s.cause, ErrPeerClosed), lingered: s.lingered}
	case s.closing, s.state == StateTerminate, s.state == StateError, s.state == StateClosing, s.state == StateClosed:
		return &endedError{state: s.state, cause: publicError(s.cause),
			released: qp.claim == released, lingered: s.lingered}
	case qp.claim == released:
		return &endedError{state: s.state, released: true}
	}
	return nil
}

// stillClosing is that of a call that needs a QP without a connection, where the last one is being closed by code of
// the consumer's.
func stillClosing(ended error) error { return fmt.Errorf("%w: wait for Done", ended) }

// CloseWrite closes our half of the connection: no more work is taken, what was
// posted is carried out, then a FIN is sent. Receiving goes on until the peer
// closes its half. A Read that the peer asks for after the FIN is not answered.
func (qp *QP) CloseWrite() error {
	if err := qp.made(); err != nil {
		return err
	}
	err := driver.ErrEnded
	if c := connected(qp); c != nil {
		was := qp.inbox.setHalf(true) // before the peer's FIN may come
		if err = c.BeginHalfClose(); err != nil {
			qp.inbox.setHalf(was)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		return &OpError{Op: "close write", Addr: qp.RemoteAddr(), Err: errors.ErrUnsupported}
	}
	return &OpError{Op: "close write", Err: qp.firstEnded(
		fmt.Errorf("%w: the QP is in %v, and has no connection whose half could be closed", ErrBadState, qp.State()))}
}

// Close ends the connection in order and releases the QP. No more work is taken, what
// was posted is carried out and what the peer has asked to read is answered; then, when
// nothing more has come from the peer during one round trip, a FIN is sent. So a Read that the
// peer posted before Close began is answered. Until the peer closes its half, what it sends
// is received, placed and delivered: completions go to the CQs, where they can be polled
// after Close too.
//
// Close returns when that is done. If the peer does not close but may still answer, Close waits up to the peer's
// QPConfig.Linger, 100 ms by default. Close gives up, with a reset, when there was no progress for CloseTimeout, or
// after CloseLimit. It returns an error if the connection did not end in order, now or before: such as a
// *TerminateError for a message that the peer refused.
//
// The round trip is TCP's own estimate on Linux. Elsewhere it is what the startup took, up to a second, or the
// estimate of a [Stack]'s net.Conn, or of SCTP in user space, if that is less. There is no wait if neither is known,
// if the peer may not read (an IRD of 0), or if it has closed its half. Reads that go on do not hold the FIN back for
// longer than half of CloseTimeout. A Read that arrives after it is not answered: see docs/endings.md on how two ends
// agree that they are done.
//
// Over SCTP the FIN is the session's Terminate. There, and over a Stack, Close returns when the peer has acknowledged
// the end of our half too, so that a program may end then; or when nothing was acknowledged for CloseTimeout. See
// [Stack].
//
// Where the connection has no halves (a net.Conn without CloseWrite), what the peer has
// under way when our work is finished is lost.
//
// A peer that sends on and never closes holds Close up for CloseLimit. Shutdown is Close for a program that cannot wait
// as long, and Abort does not wait at all.
func (qp *QP) Close() error {
	if err := qp.made(); err != nil {
		return err
	}
	return qp.closeWithin(context.Background(), "close")
}

// orderly reports whether a connection has ended as one of the two consumers wanted.
func orderly(err error) bool {
	if c, ok := errors.AsType[*ConnectionError](err); ok {
		err = c.Err // beside net.ErrClosed
	}
	if errors.Is(err, ErrAwaitingInitiator) {
		return false // requests were given up, however the connection ended after that
	}
	for _, wanted := range []error{ErrPeerClosed, engine.ErrClosedHere, engine.ErrAborted, errAborted, errRNICClosed} {
		if errors.Is(err, wanted) {
			return true
		}
	}
	return err == nil
}

// Abort ends the connection at once, not in order, flushes all work and releases the QP. Over TCP it sends a RST;
// over SCTP it aborts the association, or ends its session by a Terminate where the association has others.
func (qp *QP) Abort() error {
	if err := qp.made(); err != nil {
		return err
	}
	for over := false; !over; over = qp.destroy() {
		qp.abortAndWait(errAborted)
	}
	return nil
}

// abortAndWait returns when nothing refers to the consumer's memory any more.
func (qp *QP) abortAndWait(cause error) {
	if done := qp.abort(cause); done != nil {
		<-done
	}
}

// abort ends the connection. It returns what is closed when all work is flushed,
// or nil if there is nothing to wait for. What has ended already stays as it is.
func (qp *QP) abort(cause error) <-chan struct{} {
	qp.mu.Lock()
	c, done, idle := qp.conn.Load(), qp.done, qp.machine != nil
	qp.mu.Unlock()
	switch {
	case c != nil:
		c.Abort(cause)
		return done
	case idle && !qp.endIdle(cause):
		return qp.abort(cause) // it has just got a connection
	}
	return nil
}

// destroy releases what the QP holds of others, or waits until another goroutine has. It reports false, and does
// nothing, if the QP has a connection: it may have got another one while the last was ended.
func (qp *QP) destroy() bool {
	qp.mu.Lock()
	if qp.conn.Load() != nil {
		qp.mu.Unlock()
		return false
	}
	idle := qp.machine != nil
	qp.claim = released
	qp.mu.Unlock()
	if idle {
		qp.endIdle(errReleased)
	}
	qp.release.Do(qp.holds.giveUp)
	return true
}

// isClosed reports whether a channel, to which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
