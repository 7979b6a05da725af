package iwarp

import (
	"context"
	"fmt"
	"net"
)

// awaitRTR waits for the peer's RTR indication, whose first octets are in front of the connection that it returns.
func (r *Request) awaitRTR(ctx context.Context) (net.Conn, error) {
	conn, err := r.rnic.phase(r.conn).Await(ctx, max(r.rtrTimeout, 0))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRTR, err)
	}
	return conn, nil
}
