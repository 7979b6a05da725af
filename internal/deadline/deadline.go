// Package deadline has the timer of machines that are given the time as a value, and that tell when they want it next:
// each has one deadline, which moves with all that happens. It also says why a context has ended.
package deadline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Timer calls a function at the next deadline of a T. The zero Timer has none. It is guarded by the lock under which
// the machine is called.
type Timer[T any] struct {
	at    time.Time
	timer *time.Timer
}

// Set has f called with x at a time, in a goroutine of its own, and no more at what was set before; the zero time is
// never. x and f are the same in all calls.
func (t *Timer[T]) Set(at time.Time, x *T, f func(*T)) {
	if at.Equal(t.at) {
		return
	}
	t.at = at
	switch {
	case at.IsZero():
		t.timer.Stop()
	case t.timer == nil:
		t.timer = time.AfterFunc(time.Until(at), func() { f(x) })
	default:
		t.timer.Reset(time.Until(at))
	}
}

// Take is what f begins with, under the lock: the deadline is over, and the same one may be set again. It reports
// whether there was any. If there was none, f came too late: what it was to be called for has changed while it waited
// for the lock.
func (t *Timer[T]) Take() bool {
	was := !t.at.IsZero()
	t.at = time.Time{}
	return was
}

// ContextError returns the error of a context that has ended: ctx.Err(), and the cause where the caller gave one
// (context.WithCancelCause, context.WithTimeoutCause). The error wraps both. It is nil while the context lasts.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
