package target

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// connectTimeout is how long a connection may be without a Connect.
const connectTimeout = 10 * time.Second

// errDraining refuses a host.
var errDraining = errors.New("nvme: the target is shutting down")

// ErrBusy is wrapped by the error of a connection for which there is no room.
var ErrBusy = errors.New("nvme: as many connections as there may be")

// admit makes the queue for a host's request. The error comes with the status to reject it with.
func (t *Target) admit(req *iwarp.Request) (*queue, uint16, error) {
	data := req.PrivateData()
	asked, err := ulpdata.ParseNVMeRequest(data)
	if err != nil {
		if len(data) < ulpdata.NVMeLen {
			return nil, ulpdata.NVMeInvalidLength, err
		}
		return nil, ulpdata.NVMeInvalidFormat, err
	}
	switch most := t.depthOf(asked.QID); {
	case int(asked.QID) > t.cfg.Queues:
		return nil, ulpdata.NVMeInvalidQID, fmt.Errorf("nvme: queue %d, where there are %d", asked.QID, t.cfg.Queues)
	case asked.HSQSize == 0 || int(asked.HSQSize) >= most:
		return nil, ulpdata.NVMeInvalidHSQSize, fmt.Errorf("nvme: a queue of %d entries: 2 to %d",
			int(asked.HSQSize)+1, most)
	case req.MPA().IRD == 0:
		return nil, ulpdata.NVMeInvalidIRD, errors.New(
			"nvme: a host that takes no RDMA Reads, by which we fetch what it writes")
	}
	q := newQueue(t, asked, readDepth(req.MPA().IRD, asked.HSQSize))
	if err := t.add(q, req.RemoteAddr()); err != nil {
		return nil, ulpdata.NVMeNoResources, err
	}
	return q, 0, nil
}

// depthOf is how many entries a queue may have.
func (t *Target) depthOf(qid uint16) int {
	if qid == 0 {
		return capsule.AdminEntries
	}
	return t.cfg.QueueDepth
}

// Of a host that says nothing of its IRD so many RDMA Reads are under way, as on any connection of package iwarp; and
// never more than mostReads.
const (
	readsAtOnce = 32
	mostReads   = 128
)

// readDepth is how many RDMA Reads to a host are under way at most.
func readDepth(ird mpa.Depth, hsq uint16) mpa.Depth {
	if ird == mpa.NoNegotiation {
		ird = readsAtOnce
	}
	return min(ird, mpa.Depth(hsq)+1, mostReads)
}

// newSlots are those of a Target's connections: for the queues of all controllers, and a third as many more, so that
// one source, which may have three quarters of them, cannot keep others out by connections without a Connect. A queue
// with one stays.
func newSlots(cfg *Config) *admission.Table {
	queues := cfg.Controllers * (cfg.Queues + 1)
	return admission.NewServerTable(queues+(queues+2)/3, admission.Silence)
}

// add counts a queue in, if there is room.
func (t *Target) add(q *queue, from net.Addr) error {
	slot, full := t.slots.Enter(from, q.cancel)
	if full != nil {
		return fmt.Errorf("%w: %w", ErrBusy, full)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining {
		slot.Leave()
		return errDraining
	}
	q.slot, t.queues[q] = slot, false
	t.idle.Add(1)
	return nil
}

// start tells that a queue is connected, unless the target is shutting down.
func (t *Target) start(q *queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queues[q] = !t.draining
	return !t.draining
}

// forget counts a queue out.
func (t *Target) forget(q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues, q)
	q.slot.Leave()
	t.idle.Done()
}
