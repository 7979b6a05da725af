package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/driver"
)

// Shutdown ends the Listener, as Close does. Then it closes the connections that came by it, in order, each by
// QP.Close: what was posted on them goes out, Reads under way are answered, and messages on their way arrive. It waits
// for peers that were rejected, too (Request.Reject). When the context ends, the connections that are left are aborted.
// The error says how many, and wraps the context's error.
//
// The error is nil only if each connection has ended in order. Else it says how many have not, and wraps the error of
// the first of them, and of the first that is an [ErrConnectionLost]: what was under way there, or had completed, may
// not have arrived. Connections that had ended before Shutdown do not count: QP.Err tells of them.
//
// No more work is taken meanwhile: a message that is delivered during Shutdown is good, and a reply to it can no longer
// be posted. A server that has to answer first closes the Listener, has its peers finish (docs/endings.md), and then
// calls Shutdown.
//
// A Request that Accept has returned belongs to the caller: it can still be answered, until the RNIC is closed. An
// Accept after that fails, and closes it.
func (l *Listener) Shutdown(ctx context.Context) error {
	if err := l.made(); err != nil {
		return err
	}
	if ctx == nil {
		return &OpError{Op: "shutdown", Addr: l.Addr(), Err: errNoContext}
	}
	defer l.dismissed.End(ctx, l.rnic.closing)
	return errors.Join(l.endIfOpen(), closeAll(ctx, l.acceptedQPs()))
}

// Shutdown is Close, bounded by a context. When the context ends first, the connection is aborted, and the error wraps
// the context's, and its cause.
func (qp *QP) Shutdown(ctx context.Context) error {
	if err := qp.made(); err != nil {
		return err
	}
	if ctx == nil {
		return &OpError{Op: "shutdown", Addr: qp.RemoteAddr(), Err: errNoContext}
	}
	return qp.closeWithin(ctx, "shutdown")
}

// closeWithin is Close, or Abort when the context ends first.
func (qp *QP) closeWithin(ctx context.Context, op string) error {
	for over := false; !over; over = qp.destroy() {
		qp.endWithin(ctx)
	}
	if err := qp.Err(); !orderly(err) {
		return &OpError{Op: op, Addr: qp.RemoteAddr(), Err: err}
	}
	return nil
}

// endWithin ends the connection in order, if there is one, or aborts it when the context ends first.
func (qp *QP) endWithin(ctx context.Context) {
	c, done := qp.beginClose((*driver.Conn).BeginPolledClose)
	if c == nil {
		return
	}
	c.PollFIN()
	select { // the engine bounds it
	case <-done:
	case <-ctx.Done():
		qp.abortAndWait(&outOfTime{deadline.ContextError(ctx)})
	}
}

// beginClose has begin close the connection, and returns it, and what is closed at its end; nil if there is none.
func (qp *QP) beginClose(begin func(*driver.Conn)) (*driver.Conn, <-chan struct{}) {
	qp.mu.Lock()
	c, done := qp.conn.Load(), qp.done
	qp.mu.Unlock()
	if c == nil {
		return nil, nil
	}
	qp.inbox.setHalf(false)
	begin(c)
	return c, done
}

// endIfOpen is endAccepting, and no error where the Listener has ended already.
func (l *Listener) endIfOpen() error {
	if err := l.endAccepting(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Shutdown ends the RNIC's Listeners, closes all connections in order, and then closes the RNIC. When the context
// ends, the connections that are left are aborted, and the error says how many, and wraps the context's error. Its
// errors are those of [Listener.Shutdown]. An RNIC that was closed already is no error.
func (r *RNIC) Shutdown(ctx context.Context) error {
	if err := r.made(); err != nil {
		return err
	}
	if ctx == nil {
		return &OpError{Op: "shutdown", Err: errNoContext}
	}
	var errs []error
	lns := r.shut()
	for _, l := range lns {
		errs = append(errs, l.endIfOpen())
	}
	errs = append(errs, closeAll(ctx, r.QPs()))
	for _, l := range lns {
		l.dismissed.End(ctx, r.closing)
	}
	// Close ends this wait, too.
	r.dismissed.End(ctx, nil)
	if err := r.Close(); !errors.Is(err, ErrClosed) { // it was closed meanwhile
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// shut refuses everything new, and returns the Listeners.
func (r *RNIC) shut() []*Listener {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return slices.Collect(maps.Keys(r.lns))
}

// addListener takes note of a Listener that the RNIC's end is to end.
func (r *RNIC) addListener(l *Listener) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errRNICClosed
	}
	r.lns[l] = struct{}{}
	return nil
}

// checkOpen returns an error if the RNIC is closed, or being closed.
func (r *RNIC) checkOpen() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errRNICClosed
	}
	return nil
}

func (r *RNIC) removeListener(l *Listener) {
	r.mu.Lock()
	delete(r.lns, l)
	r.mu.Unlock()
}

// closeAll closes QPs at the same time. How a connection has ended before that is the business of its own user.
func closeAll(ctx context.Context, qps []*QP) error {
	var closing sync.WaitGroup
	var t toll
	for _, qp := range qps {
		if !orderly(qp.Err()) {
			closing.Go(func() { _ = qp.closeWithin(ctx, "close") })
			continue
		}
		closing.Go(func() { t.note(qp.closeWithin(ctx, "close")) })
	}
	closing.Wait()
	return errors.Join(t.lost(len(qps)), t.outOfTime(ctx, len(qps)))
}

// A toll counts the connections that Shutdown has not closed in order.
type toll struct {
	mu          sync.Mutex
	aborted     int
	others      int
	first, gone error // of the others, and of those of them that are an ErrConnectionLost
}

// note takes note of how a connection was closed.
func (t *toll) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		return
	case errors.As(err, new(*outOfTime)):
		t.aborted++
		return
	}
	t.others++
	if t.first = cmp.Or(t.first, err); t.gone == nil && errors.Is(err, ErrConnectionLost) {
		t.gone = err
	}
}

// lost is the error of connections that have ended while they were to be closed, and not in order. It is no longer
// for a thousand of them than for two.
func (t *toll) lost(of int) error {
	if t.others == 0 {
		return nil
	}
	return &OpError{Op: "shutdown", Err: &tollError{t, of}}
}

// outOfTime returns the error of a Shutdown whose context has ended before all connections had.
func (t *toll) outOfTime(ctx context.Context, of int) error {
	if t.aborted == 0 {
		return nil
	}
	err := fmt.Errorf("%w; connections that were aborted: %d of %d", deadline.ContextError(ctx), t.aborted, of)
	return &OpError{Op: "shutdown", Err: err}
}

type tollError struct {
	*toll
	of int
}

// Error tells how many they were, and quotes one.
func (e *tollError) Error() string {
	return fmt.Sprintf("connections that did not end in order: %d of %d; one of them: %s", e.others, e.of,
		text(cmp.Or(e.gone, e.first)))
}

// Unwrap returns what the error is.
func (e *tollError) Unwrap() []error {
	if e.gone == nil {
		return []error{e.first}
	}
	return []error{e.first, e.gone} // which may be the same
}

// outOfTime is the cause of the end of a connection that Shutdown could not close in order.
type outOfTime struct{ error }

// Error says whose time it was.
func (e *outOfTime) Error() string { return "aborted, as Shutdown ran out of time: " + e.error.Error() }

// Unwrap returns the context's error.
func (e *outOfTime) Unwrap() error { return e.error }

// addQP notes a QP as one whose connection came by the Listener, unless the QP has been released meanwhile.
func (l *Listener) addQP(qp *QP) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.listener.forget(qp)
	if qp.claim == released {
		return
	}
	qp.listener = l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.qps[qp] = struct{}{}
}

func (l *Listener) acceptedQPs() []*QP {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.qps))
}

// forget forgets a QP whose connection came by the Listener, if there is one: the QP is released, or ready for another
// connection, and that one may not come by it. The caller holds qp.mu.
func (l *Listener) forget(qp *QP) {
	if l == nil {
		return
	}
	l.mu.Lock()
	delete(l.qps, qp)
	l.mu.Unlock()
	qp.listener = nil
}
