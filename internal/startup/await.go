package startup

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// Await waits for octets after the startup frames, no longer than a limit if that is positive. It returns the connection
// with them in front.
func (p Phase) Await(ctx context.Context, limit time.Duration) (net.Conn, error) {
	g := watch(ctx, p.Conn)
	defer g.stop()
	var by time.Time
	if limit > 0 {
		by = time.Now().Add(limit)
	}
	if err := g.until(by); err != nil {
		return nil, err
	}
	ahead := bufio.NewReaderSize(p.Conn, firstRead)
	if _, err := ahead.Peek(1); err != nil {
		return nil, g.cause(err)
	}
	return tcp.NewBuffered(p.Conn, ahead), g.lift()
}
