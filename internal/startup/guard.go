package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/gone"
)

// A guard ends reads and writes on a connection with a context.
type guard struct {
	ctx  context.Context
	conn net.Conn
	stop func() bool
}

func watch(ctx context.Context, c net.Conn) guard {
	if ctx.Done() == nil { // it never ends
		return guard{ctx, c, func() bool { return true }}
	}
	return guard{ctx, c, context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })}
}

// until sets the deadline of what follows; the zero time is none. It looks at the context last: the call
// may just have overwritten the deadline that the end of the context has set.
func (g guard) until(t time.Time) error {
	if err := g.conn.SetDeadline(t); err != nil {
		return err
	}
	return g.ctx.Err()
}

// lift takes the guard off. It fails if the context has ended: then the deadline may still be set.
func (g guard) lift() error {
	if !g.stop() {
		return g.ctx.Err()
	}
	return g.conn.SetDeadline(time.Time{})
}

// cause returns the context's error if the context has ended, and otherwise err.
func (g guard) cause(err error) error {
	if ended := g.ctx.Err(); ended != nil {
		return ended
	}
	return err
}

// failed returns what a failed read or write means to the startup.
func (g guard) failed(m Machine, err error) error {
	ended := g.ctx.Err()
	switch {
	case errors.Is(ended, context.DeadlineExceeded) && m.Want() > 0:
		return g.below(m.GiveUp(time.Now(), ended))
	case ended != nil && m.Want() > 0:
		return fmt.Errorf("given up before the peer's startup frame was there: %w", ended)
	case ended != nil:
		return ended
	case errors.Is(err, os.ErrDeadlineExceeded) && !m.Deadline().IsZero():
		// The system's clock for deadlines may be a little ahead of ours.
		return g.below(m.HandleTimeout(later(time.Now(), m.Deadline())))
	case gone.Peer(err):
		return m.PeerClosed(err)
	}
	return fmt.Errorf("the connection failed during the startup: %w", err)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
