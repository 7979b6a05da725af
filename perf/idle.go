package perf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
)

// idleLimit is how long a measurement may stand still until an end gives it up, and an initiator that has not asked for
// one until the responder does.
const idleLimit = 30 * time.Second

// looks is how often we look within the limit whether anything has moved. A process that was stopped misses looks, so
// that the time when it could not see anything does not count.
const looks = 10

// A stillError ends a measurement whose other end has been still for so long.
type stillError struct {
	other side
	limit time.Duration
}

func (e *stillError) Error() string {
	text := fmt.Sprintf("perf: nothing has moved on the connections with the %v for %v: it hangs or is stopped, or the path to it is cut", e.other, e.limit)
	if e.other == responder {
		text += ", or it is no responder of iwarp perf (--listen): look at it, and start it again"
	}
	return text
}

// orStill is why an end gave the measurement up, if it did: what that did to the connections is of no interest.
func orStill(ctx context.Context, err error) error {
	if still := (*stillError)(nil); err != nil && errors.As(context.Cause(ctx), &still) {
		return still
	}
	return err
}

// meters tell whether anything moves on the connections of a session.
type meters struct {
	bytes atomic.Int64 // on plain TCP connections; and one for each QP that has come up

	mu      sync.Mutex
	watched []*iwarp.QP
}

// join has a QP watched. That it has come up is movement, too.
func (m *meters) join(qp *iwarp.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = append(m.watched, qp)
	m.bytes.Add(1)
}

// moved is a number that grows when bytes move.
func (m *meters) moved() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := uint64(m.bytes.Load())
	for _, qp := range m.watched {
		s := qp.Stats()
		sum += s.SentStream + s.ReceivedStream
	}
	return sum
}

// watch calls still when a number has not changed for the limit, unless the function that it returns was called
// before. A limit of 0 is none.
func watch(ctx context.Context, limit time.Duration, moved func() uint64, still func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	if limit > 0 {
		go func() {
			if standsStill(ctx, limit, moved) {
				still()
			}
		}()
	}
	return cancel
}

// standsStill returns true when a number has not changed for the limit, or false when the context ends.
func standsStill(ctx context.Context, limit time.Duration, moved func() uint64) bool {
	tick := time.NewTicker(limit / looks)
	defer tick.Stop()
	for last, same := moved(), 0; same < looks; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		same++
		if now := moved(); now != last {
			last, same = now, 0
		}
	}
	return true
}

// watch ends the visit when nothing has moved for the reception's limit, until the
// function that it returns is called.
func (a *respondent) watch(ctx context.Context) (stop func()) {
	a.join(a.ctl.qp)
	limit := a.reception.idle
	return watch(ctx, limit, a.moved, func() { a.cancel(&stillError{initiator, limit}) })
}

// whileMoving returns a context that ends when the responders of sessions, of which one is busy at a time, are still,
// and when a control connection ends.
func whileMoving(ctx context.Context, sessions ...*session) (context.Context, context.CancelFunc) {
	ctx, giveUp := context.WithCancelCause(ctx)
	moved := func() (sum uint64) {
		for _, s := range sessions {
			sum += s.moved()
		}
		return sum
	}
	watch(ctx, idleLimit, moved, func() { giveUp(&stillError{responder, idleLimit}) })
	within := ctx
	for _, s := range sessions {
		within, _ = whileConnected(within, s.ctl.qp) // which ends with ctx
	}
	return within, func() { giveUp(nil) }
}
