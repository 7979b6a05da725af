// Package credits counts messages against the receives of a peer, so that each message finds a receive.
//
// Two ends agree on how many messages one may have on the way: its credits. The other posts as many receives, before
// the connection is up. A message takes a credit, and the peer's answer gives it back, as the peer has posted the
// receive again before it answers. A message that has no answer needs another that says so, now and then, for several
// at once. What is sent without a credit, such as the word that an end is leaving, needs a receive of its own.
//
//	c := credits.New(qp, 16)
//	err := c.Take(ctx) // before each message
//	err := c.Give(1)   // for each answer
//
// Programs that may wait in TCP need no credits: iwarp.QPConfig has Receives for them.
package credits

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/deadline"
)

// ErrTooMany is the error of Give for more credits than were taken: the peer does not keep to the protocol.
var ErrTooMany = errors.New("credits: the peer has given back more than were taken")

// Credits are those that this end of a connection has. Several goroutines may use them.
type Credits struct {
	qp *iwarp.QP
	// taken has an element for each.
	taken chan struct{}
}

// New returns Credits with n, for a connection that is up. It panics if n is negative.
func New(qp *iwarp.QP, n int) *Credits { return &Credits{qp, make(chan struct{}, n)} }

// Take takes a credit, and waits for one if there is none. It does not ask whether the connection is up, unless it has
// to wait. The error is that of the context, or of a connection that has ended (QP.Err): no more come then. It wraps
// iwarp.ErrInvalid if the Credits or the context are nil.
func (c *Credits) Take(ctx context.Context) error {
	switch {
	case !c.isMade():
		return errNotMade
	case ctx == nil:
		return fmt.Errorf("credits: %w: the context is nil; use context.Background()", iwarp.ErrInvalid)
	}
	if err := deadline.ContextError(ctx); err != nil {
		return err
	}
	select {
	case c.taken <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.taken <- struct{}{}:
		return nil
	case <-c.qp.Done():
		return cmp.Or(c.qp.Err(), iwarp.ErrClosed)
	case <-ctx.Done():
		return deadline.ContextError(ctx)
	}
}

// Give gives n credits back, as a message of the peer says. It does not wait. The error is ErrTooMany if fewer were
// taken; all of them are then given back. It wraps iwarp.ErrInvalid if n is negative, or the Credits are nil.
func (c *Credits) Give(n int) error {
	switch {
	case !c.isMade():
		return errNotMade
	case n < 0:
		return fmt.Errorf("credits: %w: %d credits to give back, and it must be 0 or more", iwarp.ErrInvalid, n)
	}
	for range n {
		select {
		case <-c.taken:
		default:
			return ErrTooMany
		}
	}
	return nil
}

var errNotMade = fmt.Errorf("credits: %w: the Credits are nil or a zero value; New makes them", iwarp.ErrInvalid)

func (c *Credits) isMade() bool { return c != nil && c.taken != nil }

// Left returns how many credits there are at this moment.
func (c *Credits) Left() int {
	if c == nil {
		return 0
	}
	return cap(c.taken) - len(c.taken)
}
