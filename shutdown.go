package iwarp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Shutdown ends the Listener, as Close does, and then closes in order the connections
// that came by it: what was posted on them goes out, Reads that are under way are
// answered, and messages that are on their way arrive. Each is QP.Close. When the context
// ends, the connections that are left are aborted, and the error says how many, and wraps its error.
//
// No more work is taken meanwhile: a message that is delivered during Shutdown is good, and
// a reply to it can no longer be posted. A server that has to answer first closes the
// Listener, has its peers finish (docs/endings.md), and then calls Shutdown.
//
// A Request that Accept has returned belongs to the caller: it can still be answered, until the RNIC is closed. An
// Accept after that fails, and closes it.
func (l *Listener) Shutdown(ctx context.Context) error {
	return errors.Join(l.end(), closeAll(ctx, l.adopted()))
}

// end is Close, and no error where the Listener has ended already.
func (l *Listener) end() error {
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Shutdown ends the RNIC's Listeners, closes all connections in order, and then closes
// the RNIC. When the context ends, the connections that are left are aborted, and the error
// says how many, and wraps its error. An RNIC that was closed already is no error.
func (r *RNIC) Shutdown(ctx context.Context) error {
	var errs []error
	for _, l := range r.shut() {
		errs = append(errs, l.end())
	}
	errs = append(errs, closeAll(ctx, r.QPs()))
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

// closeAll closes QPs at the same time. How each connection has ended is the business of
// its own user.
func closeAll(ctx context.Context, qps []*QP) error {
	var closing sync.WaitGroup
	var aborted atomic.Int64
	for _, qp := range qps {
		closing.Go(func() {
			if err := qp.closeWithin(ctx); errors.As(err, new(*outOfTime)) {
				aborted.Add(1)
			}
		})
	}
	closing.Wait()
	if err := ctx.Err(); err != nil {
		return &OpError{Op: "shutdown", Err: fmt.Errorf("%w; connections that were aborted: %d of %d", err, aborted.Load(), len(qps))}
	}
	return nil
}

// outOfTime is the cause of the end of a connection that Shutdown could not close in order.
type outOfTime struct{ error }

// Error says whose time it was.
func (e *outOfTime) Error() string { return "aborted, as Shutdown ran out of time: " + e.error.Error() }

// Unwrap returns the context's error.
func (e *outOfTime) Unwrap() error { return e.error }

// adopt notes a QP as one whose connection came by the Listener.
func (l *Listener) adopt(qp *QP) {
	l.mu.Lock()
	l.qps[qp] = struct{}{}
	l.mu.Unlock()
	if !qp.adoptedBy(l) {
		l.forget(qp)
	}
}

func (l *Listener) forget(qp *QP) {
	l.mu.Lock()
	delete(l.qps, qp)
	l.mu.Unlock()
}

func (l *Listener) adopted() []*QP {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.qps))
}

// adoptedBy notes which Listener a connection came by, and has the one before forget the
// QP. It reports false if the QP has been released meanwhile.
func (qp *QP) adoptedBy(l *Listener) bool {
	qp.mu.Lock()
	before := qp.listener
	ok := !qp.destroyed || l == nil
	if ok {
		qp.listener = l
	}
	qp.mu.Unlock()
	if before != nil && before != l {
		before.forget(qp)
	}
	return ok
}
