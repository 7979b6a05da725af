package perf

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
)

// errClosed is the other end's regular close.
var errClosed = errors.New("perf: the other end closed the connection")

// whileConnected returns a context that ends with the connection, too. Work
// that is posted after the other end's orderly close would wait for ever: the
// QP is Idle then, and could be connected again.
func whileConnected(ctx context.Context, qp *iwarp.QP) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := qp.Done()
	go func() {
		select {
		case <-done:
			cancel(reason(qp))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// reason is why a connection that has ended did so.
func reason(qp *iwarp.QP) error {
	if cause := qp.Err(); cause != nil {
		return cause
	}
	return errClosed
}

// endReason prefers the reason why the connection ended, which is known a
// little later, to what that did to a single work request.
func endReason(ctx context.Context, qp *iwarp.QP, err error) error {
	select {
	case <-qp.Done():
		return reason(qp)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Second): // the connection is alive, only the request failed
		return err
	}
}
