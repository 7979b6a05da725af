package host_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// TestClosesInOrder has a controller take its time to shut down: Close waits for that, and no connection is reset. A
// call that is under way fails.
func TestClosesInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const takes = 3 * time.Second
		p := newPeer(t)
		var told atomic.Pointer[time.Time]
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			access, _ := c.Property()
			switch {
			case q.id > 0 && c.Opcode == capsule.OpRead:
				return false
			case q.id > 0 || c.Opcode != capsule.OpFabrics:
			case c.FabricsType() == capsule.FabricsPropertySet && capsule.Configuration(access.Value).Shutdown() != 0:
				now := time.Now()
				told.Store(&now)
			case c.FabricsType() == capsule.FabricsPropertyGet && access.Property == capsule.PropertyCSTS:
				a.Result = uint64(capsule.StatusReady)
				if at := told.Load(); at != nil && time.Since(*at) >= takes {
					a.Result |= uint64(capsule.StatusShutdownDone)
				}
			}
			return true
		}
		c, n := p.startServing().open(p.dialer())
		reading := make(chan error, 1)
		go func() {
			_, err := n.ReadAt(make([]byte, 512), 0)
			reading <- err
		}()
		synctest.Wait()
		began := time.Now()
		testrig.Must(t, c.Close())
		if took := time.Since(began); took < takes || took > takes+time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := <-reading; !errors.Is(err, host.ErrClosed) {
			t.Errorf("a Read that was under way: %v", err)
		}
		synctest.Wait()
		for _, q := range p.qps {
			if err := q.qp.Err(); !errors.Is(err, iwarp.ErrPeerClosed) {
				t.Errorf("queue %d ended so: %v", q.id, err)
			}
		}
	})
}
