package perf

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp"
)

// whileConnected returns a context that ends with the connection, too: without its
// control connection a measurement is over.
func whileConnected(ctx context.Context, qp *iwarp.QP) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := qp.Done()
	go func() {
		select {
		case <-done:
			cancel(qp.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// endReason prefers the reason why the connection, or the context, ended to what that did
// to a single work request.
func endReason(ctx context.Context, qp *iwarp.QP, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return qp.Cause(err)
}
