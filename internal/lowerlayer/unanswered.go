package lowerlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
)

// A late is the end of a handshake by our own limit, and not the caller's.
type late struct{ limit time.Duration }

// Error says what to look at.
func (e *late) Error() string {
	return fmt.Sprintf("none within %v; does the peer listen with network \"sctp\"?", e.limit)
}

// Timeout reports true, as that of a net.Error.
func (*late) Timeout() bool { return true }

// Limit bounds the context of a handshake.
func Limit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &late{limit})
}

// Unanswered is the ErrNoAnswer of a handshake whose context has ended. It wraps the error of the caller's context if
// it was that.
func Unanswered(ctx context.Context) error {
	why := deadline.ContextError(ctx)
	if own := new(late); errors.As(context.Cause(ctx), &own) {
		why = own
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, why)
}
