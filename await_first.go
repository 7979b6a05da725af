package iwarp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"
)

// awaitFirst waits for the Initiator's first octets, which are in front of the connection that it returns. An RTR indication has a time limit.
func (r *Request) awaitFirst(ctx context.Context, rtr time.Duration) (net.Conn, error) {
	conn, err := r.rnic.phase(r.conn).Await(ctx, rtr)
	switch {
	case err == nil:
		return conn, nil
	case r.owesRTR():
		return nil, fmt.Errorf("%w: %w", ErrNoRTR, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrAwaitingInitiator, err)
}

// early is how long after its answer a Responder sends that has not heard anything by then, or 0.
func (qp *QP) early(n *Negotiated, l lease) time.Duration {
	if n.SendFirst || n.PeerToPeer {
		return 0
	}
	return max(cmp.Or(qp.cfg.SendEarly, l.sendEarly), 0)
}

// hearsFirst reports whether a Responder sends nothing before it has heard something.
func (qp *QP) hearsFirst(n *Negotiated, l lease) bool { return !n.SendFirst && qp.early(n, l) == 0 }
