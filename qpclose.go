package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// CloseWrite closes our half of the connection: no more work is taken, what was
// posted is carried out, then a FIN is sent. Receiving goes on until the peer
// closes its half. A Read that the peer asks for after the FIN is not answered.
func (qp *QP) CloseWrite() error {
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.ended(); err != nil {
		return &OpError{Op: "close write", Err: err}
	}
	switch {
	case qp.eng.State() != engine.RTS:
		return &OpError{Op: "close write", Err: fmt.Errorf("%w: the QP is in %v, and has no connection whose half could be closed", ErrBadState, qp.state())}
	case !qp.link.HasHalves():
		return &OpError{Op: "close write", Addr: qp.ends.remote, Err: errors.ErrUnsupported}
	}
	qp.eng.BeginHalfClose(time.Now())
	qp.pushUnlocking()
	return nil
}

// Close ends the connection in order and releases the QP. No more work is taken, what
// was posted is carried out and what the peer has asked to read is answered; then, when
// nothing more has come from the peer during one round trip, a FIN is sent. So a Read that the
// peer posted before Close began is answered. Until the peer closes its half, what it sends
// is received, placed and delivered: completions go to the CQs, where they can be polled
// after Close too.
//
// Close returns when that is done: where the peer's program does not close as well, that takes its QPConfig.Linger, 100
// ms by default. It gives up, with a reset, when there was no progress for CloseTimeout, or after CloseLimit. It
// returns an error if the connection did not end in order, now or before: such as a *TerminateError for a message that
// was posted before and that the peer refused.
//
// The round trip is TCP's own estimate on Linux. Elsewhere it is what the startup took, up to a second, or the estimate of a [Stack]'s net.Conn, or
// of SCTP in user space, if that is less. There is no wait if neither is known, if the peer may not read (an IRD of 0), or if it has closed its half.
// Reads that go on do not hold the FIN back for longer than half of CloseTimeout. A Read that arrives after it is not answered: see docs/endings.md
// on how two ends agree that they are done.
//
// Over SCTP the FIN is the session's Terminate. There, and over a Stack, Close returns when the peer has acknowledged the end
// of our half too, so that a program may end then; or when nothing was acknowledged for CloseTimeout. See [EndTeller].
//
// Where the connection has no halves (a net.Conn without CloseWrite), what the peer has
// under way when our work is finished is lost.
func (qp *QP) Close() error { return qp.closeWithin(context.Background()) }

// BeginClose begins what Close does, and does not wait for it: when it returns, no more work is taken. [QP.Done] tells of the end of the
// connection. Close has to be called all the same: it waits for what is left of that, and releases the QP. Where there is no connection,
// nothing is begun.
func (qp *QP) BeginClose() { qp.beginClose() }

// closeWithin is Close, or Abort when the context ends first.
func (qp *QP) closeWithin(ctx context.Context) error {
	if done := qp.beginClose(); done != nil {
		qp.pollQuiet()
		qp.awaitEnd(ctx, done)
	}
	qp.destroy()
	if err := qp.Err(); !orderly(err) {
		return &OpError{Op: "close", Addr: qp.RemoteAddr(), Err: err}
	}
	return nil
}

// beginClose returns what is closed at the end of the connection, or nil if there was
// none.
func (qp *QP) beginClose() <-chan struct{} {
	l, octets := qp.moves()
	p := qp.asked()
	qp.mu.Lock()
	defer qp.unlock()
	qp.moved(time.Now(), l, octets)
	qp.learn(&p)
	qp.eng.BeginClose(time.Now(), qp.roundTrip(&p))
	qp.closing = qp.link != nil
	qp.pushUnlocking()
	if qp.link == nil {
		return nil
	}
	return qp.done
}

// maxMeasured bounds a round trip that the startup measured: it may include the time that
// the peer's consumer took.
const maxMeasured = time.Second

// roundTrip returns how long the path takes there and back, and zero if that is not known:
// what TCP says, or else what the startup took. Of two that may be from a bad moment it is the less.
func (qp *QP) roundTrip(p *path) time.Duration {
	if qp.link == nil {
		return 0
	}
	startup := min(max(qp.neg.RTT, qp.watch.answer), maxMeasured)
	switch {
	case p.known && p.Old:
		return min(p.Longest(), cmp.Or(startup, maxMeasured))
	case p.known:
		return p.Longest()
	}
	return startup
}

// learnRoundTrip has the engine know what the first FPDU of a peer that owes it tells of the path, where it comes during Close.
func (qp *QP) learnRoundTrip(now time.Time) {
	if qp.closing && qp.watch.owed {
		qp.eng.RoundTrip(now, min(now.Sub(qp.watch.began), maxMeasured))
	}
}

// A path is what a lower layer has said of the way to the peer.
type path struct {
	tcp.Path
	known bool   // the times are
	of    link   // nil: there was none
	sent  uint64 // octets of the stream that it had been given before
}

// asked asks the lower layer about the way to the peer. The caller does not hold qp.mu: the layer may be the consumer's code.
func (qp *QP) asked() (p path) {
	qp.mu.Lock()
	p.of, p.sent = qp.link, qp.eng.StreamSent()
	qp.mu.Unlock()
	if p.of != nil {
		p.Path, p.known = p.of.Path()
	}
	return p
}

// learn notes whether the lower layer has sent all that it had been given, as far as it tells.
func (qp *QP) learn(p *path) {
	if p.of != nil && p.of == qp.link && !p.Unsent {
		qp.allSent = p.sent
	}
}

// unsent reports whether the lower layer had something that it had not sent when it was last asked.
func (qp *QP) unsent() bool { return qp.allSent != qp.eng.StreamSent() }

// noteUnsent has the lower layer asked when a wait before the FIN begins. What it has not sent by then, it sends some time during the
// wait: another one is to follow.
func (qp *QP) noteUnsent() {
	if at := qp.eng.Quiet(); !at.Equal(qp.quietBy) {
		qp.quietBy, qp.asks = at, !at.IsZero() && qp.unsent()
	}
}

// askUnlocking asks it. The caller holds qp.mu, which is released meanwhile.
func (qp *QP) askUnlocking() {
	if qp.asks {
		qp.asks = false
		qp.mu.Unlock()
		p := qp.asked()
		qp.mu.Lock()
		qp.learn(&p)
	}
}

// A wait of no more than pollTime is not left to a timer, which may be a millisecond late:
// on a short path that is longer than all of a connection. maxPolls bounds it where the
// time stands still.
const (
	pollTime = 200 * time.Microsecond
	maxPolls = 1000
)

// polledFor reports whether the time until something is due is too short for a timer; the zero
// time is never.
func polledFor(at, now time.Time) bool { return !at.IsZero() && at.Sub(now) <= pollTime }

// pollQuiet receives until a FIN that is held back for a short time is sent.
func (qp *QP) pollQuiet() {
	for range maxPolls {
		at, now := qp.quiet(), time.Now()
		if !polledFor(at, now) {
			return
		}
		if !now.Before(at) {
			qp.onTimer()
		}
		qp.tryReceive()
		runtime.Gosched()
	}
}

func (qp *QP) quiet() time.Time {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.eng.Quiet()
}

// orderly reports whether an end is as some consumer wanted it.
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

// awaitEnd waits for the end of the connection, which the engine bounds.
func (qp *QP) awaitEnd(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		qp.abortAndWait(&outOfTime{ctx.Err()})
	}
}

// Abort ends the connection at once, not in order, flushes all work and releases the QP. Over TCP it sends a RST;
// over SCTP it aborts the association, or ends its session by a Terminate where the association has others.
func (qp *QP) Abort() error {
	qp.abortAndWait(errAborted)
	qp.destroy()
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
	defer qp.unlock()
	if qp.state() != StateClosed {
		qp.eng.Abort(cause)
	}
	qp.farewell.hurry()
	qp.pushUnlocking()
	if qp.link == nil {
		return nil
	}
	return qp.done
}

// destroy releases what the QP holds of others. Its connection has ended.
func (qp *QP) destroy() {
	if qp.discard() {
		qp.adoptedBy(nil)
		qp.release()
	}
}

// discard reports whether there is something to be released.
func (qp *QP) discard() bool {
	qp.mu.Lock()
	defer qp.unlock()
	if qp.destroyed {
		return false
	}
	qp.destroyed = true
	qp.rnic.trimmer.drop(qp)
	if qp.state() == StateIdle {
		qp.eng.Abort(errReleased)
		qp.settle()
	}
	if qp.link == nil {
		qp.end()
	}
	return true
}
