package perf

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
)

// idleLimit is how long a measurement, or an initiator that has not asked for one, may
// stand still until the responder gives it up.
const idleLimit = 30 * time.Second

var errIdle = errors.New("perf: nothing has moved on the initiator's connections for too long")

// meters tell whether anything moves on the connections of a visit.
type meters struct {
	octets atomic.Int64 // on plain TCP connections

	mu      sync.Mutex
	watched []*iwarp.QP
}

// join has a QP watched.
func (m *meters) join(qp *iwarp.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = append(m.watched, qp)
}

// moved is a number that grows when octets move.
func (m *meters) moved() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := uint64(m.octets.Load())
	for _, qp := range m.watched {
		s := qp.Stats()
		sum += s.SentStream + s.ReceivedStream
	}
	return sum
}

// watch ends the visit when nothing has moved for the reception's limit, until the
// function that it returns is called.
func (a *attendance) watch(ctx context.Context) (stop func()) {
	a.join(a.ctl.qp)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(a.reception.idle)
		defer tick.Stop()
		for last := a.moved(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := a.moved()
			if now == last {
				a.cancel(errIdle)
				return
			}
			last = now
		}
	}()
	return cancel
}

// A meter is a connection whose octets are counted.
type meter struct {
	net.Conn
	moved *atomic.Int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.moved.Add(int64(n))
	return n, err
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.moved.Add(int64(n))
	return n, err
}
