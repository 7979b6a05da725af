package iwarp_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
)

// A lapsing context is one whose deadline passes when the test says so, and that does not
// notice.
type lapsing struct {
	context.Context
	at   time.Time
	over atomic.Bool
}

func (c *lapsing) Deadline() (time.Time, bool) {
	if c.over.Load() {
		return time.Unix(1, 0), true
	}
	return c.at, true
}

// TestDialLapsed dials with a context that is over, or whose deadline passes while the TCP
// connection is opened: errors.Is finds the context's error, and it is a timeout, even if the
// socket's deadline comes before the context's.
func TestDialLapsed(t *testing.T) {
	ln := listenTCP(t)
	over, cancel := context.WithDeadline(within(t), time.Unix(1, 0))
	defer cancel()
	between := &lapsing{Context: within(t), at: time.Now().Add(time.Hour)}
	opening := func(_, _ string, _ syscall.RawConn) error {
		between.over.Store(true)
		return nil
	}
	for _, c := range []struct {
		name    string
		ctx     context.Context
		network string
		dialer  iwarp.Dialer
	}{
		{"over", over, "tcp", iwarp.Dialer{}},
		{"over, SCTP", over, "sctp", iwarp.Dialer{}},
		{"Timeout over", within(t), "tcp", iwarp.Dialer{Timeout: 1}},
		{"over before the context knows", between, "tcp", iwarp.Dialer{Net: net.Dialer{Control: opening}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == between && runtime.GOOS != "linux" {
				t.Skip("connect may succeed at once, and then does not look at the deadline")
			}
			_, err := c.dialer.Dial(c.ctx, c.network, ln.Addr().String())
			var n net.Error
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &n) || !n.Timeout() {
				t.Errorf("got %v", err)
			}
		})
	}
}
