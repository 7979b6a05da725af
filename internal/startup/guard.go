package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/neterr"
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
	return deadline.ContextError(g.ctx)
}

// lift takes the guard off. It fails if the context has ended: then the deadline may still be set.
func (g guard) lift() error {
	if !g.stop() {
		return deadline.ContextError(g.ctx)
	}
	return g.conn.SetDeadline(time.Time{})
}

// cause returns the context's error if the context has ended, and otherwise err.
func (g guard) cause(err error) error {
	if ended := deadline.ContextError(g.ctx); ended != nil {
		return ended
	}
	return err
}

// failed returns what a failed read or write means to the startup.
func (g guard) failed(m Machine, err error) error {
	ended := deadline.ContextError(g.ctx)
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
	case neterr.PeerGone(err):
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

// A handshakeError is that of a startup which had not begun when its time was over, as TLS below it had not come to
// its end.
type handshakeError struct{ error }

// Error says so, and leaves out what is said of frames.
func (handshakeError) Error() string {
	return "the TLS handshake did not come to its end in the time for the startup: the peer has no TLS, or says nothing"
}

// Unwrap returns the machine's error.
func (e handshakeError) Unwrap() error { return e.error }

// below has a timeout say whether it was TLS's.
func (g guard) below(timeout error) error {
	if timeout != nil && inHandshake(g.conn) {
		return handshakeError{timeout}
	}
	return timeout
}

// inHandshake reports whether a connection that has failed is one of TLS, as a tls.Conn is, whose handshake is not
// complete: Handshake returns at once then, with what it has failed with.
func inHandshake(c net.Conn) bool {
	for {
		if secure, ok := c.(interface{ Handshake() error }); ok {
			return secure.Handshake() != nil
		}
		on, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		c = on.NetConn()
	}
}
