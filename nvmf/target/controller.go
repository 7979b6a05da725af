package target

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
)

const (
	lastController = 0xFFEF // the highest number that there may be
	abortLimit     = 4
	eventLimit     = 4
)

// errSilent ends the connections of a host that has not been heard of.
var errSilent = errors.New("nvme: the keep-alive time has passed")

// errAdmin ends the I/O queues of a controller.
var errAdmin = errors.New("nvme: the connection of the Admin Queue has ended")

// A controller is what a host has connected to.
type controller struct {
	t         *Target
	id        uint16
	host      capsule.ConnectData
	discovery bool // of the discovery subsystem
	way       way  // of its Admin Queue

	mu        sync.Mutex
	queues    map[uint16]*queue // by number
	over      bool              // none is added any more
	config    capsule.Configuration
	status    capsule.ControllerStatus
	granted   int // I/O queues
	events    uint32
	waiting   []capsule.Command // Asynchronous Event Requests
	keepAlive time.Duration
	silence   *time.Timer // ends the controller

	lastHeard atomic.Int64 // since made, in nanoseconds
	made      time.Time
}

// newController is one with an Admin Queue. The caller has the target's lock.
func (t *Target) newController(q *queue, n capsule.Connect, host capsule.ConnectData) *controller {
	c := &controller{
		t: t, host: host, made: time.Now(), discovery: host.SubsystemNQN == capsule.DiscoveryNQN,
		queues: map[uint16]*queue{0: q}, granted: t.cfg.Queues, way: wayOf(q.qp),
	}
	for c.id == 0 {
		if t.lastID = t.lastID%lastController + 1; t.controllers[t.lastID] == nil {
			c.id = t.lastID
		}
	}
	t.controllers[c.id] = c
	c.expect(n.KeepAlive)
	return c
}

// expect ends the controller when its host was silent for longer than so many milliseconds; 0: never.
func (c *controller) expect(milliseconds uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silence != nil {
		c.silence.Stop()
		c.silence = nil
	}
	c.keepAlive = time.Duration(milliseconds) * time.Millisecond
	if milliseconds != 0 {
		c.heard()
		c.silence = time.AfterFunc(c.patience(), c.listen)
	}
}

// listen ends a controller that was silent, and otherwise looks again when it will have been.
func (c *controller) listen() {
	c.mu.Lock()
	if c.silence == nil {
		c.mu.Unlock()
		return // nobody listens any more
	}
	left := c.patience() - time.Since(c.made) + time.Duration(c.lastHeard.Load())
	if left > 0 {
		c.silence.Reset(left)
	}
	c.mu.Unlock()
	if left <= 0 {
		c.abortAll(errSilent)
	}
}

// patience leaves a host more time than it has asked for, as it sees a loss itself when that has passed.
func (c *controller) patience() time.Duration { return c.keepAlive + c.keepAlive/2 + time.Second }

// heard tells of a command, on any queue.
func (c *controller) heard() { c.lastHeard.Store(int64(time.Since(c.made))) }

// abortAll aborts all connections.
func (c *controller) abortAll(reason error) {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	for _, q := range c.connected() {
		q.abort(reason)
	}
}

// connected is a list of the queues.
func (c *controller) connected() []*queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.queues))
}

// attach adds an I/O queue, if there is none of that number.
func (c *controller) attach(q *queue) capsule.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over, !c.status.Has(capsule.StatusReady), c.queues[0] == nil, c.queues[q.qid] != nil:
		return capsule.SequenceError // which heals when the host connects again
	case int(q.qid) > c.granted:
		return capsule.InvalidParameter | capsule.DNR
	}
	c.queues[q.qid] = q
	return capsule.Success
}

// lost takes a queue away whose connection has ended. The controller goes with the last.
func (c *controller) lost(q *queue, reason error) {
	c.mu.Lock()
	delete(c.queues, q.qid)
	left := len(c.queues)
	if q.qid == 0 {
		c.waiting = nil
	}
	c.mu.Unlock()
	if q.qid == 0 {
		c.abortAll(errors.Join(errAdmin, reason))
	}
	if left == 0 {
		c.expect(0)
		c.t.mu.Lock()
		delete(c.t.controllers, c.id)
		c.t.mu.Unlock()
	}
}

// property returns the value of one.
func (c *controller) property(p capsule.Property) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch p {
	case capsule.PropertyCAP:
		return uint64(capsule.NewCapabilities(uint16(c.t.cfg.QueueDepth), readyTimeout)), true
	case capsule.PropertyVS:
		return capsule.Version13, true
	case capsule.PropertyCC:
		return uint64(c.config), true
	case capsule.PropertyCSTS:
		return uint64(c.status), true
	}
	return 0, false
}

// readyTimeout is what a host is told, in capsule.TimeoutUnit.
const readyTimeout = 15

// configure is a Property Set of CC. Enabling and shutting down are done at once; disabling forgets everything that a
// host has set.
func (c *controller) configure(to capsule.Configuration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case to.Enabled() && !c.config.Enabled():
		c.status = capsule.StatusReady
	case !to.Enabled() && c.config.Enabled():
		c.status, c.events, c.granted, c.waiting = 0, 0, c.t.cfg.Queues, nil
	}
	if to.Shutdown() != 0 {
		c.status |= capsule.StatusShutdownDone
	}
	c.config = to
}

// ready reports whether commands that are no fabrics commands are carried out.
func (c *controller) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status.Has(capsule.StatusReady)
}

// await keeps an Asynchronous Event Request, if there are not too many of them.
func (c *controller) await(cmd capsule.Command) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= eventLimit {
		return false
	}
	c.waiting = append(c.waiting, cmd)
	return true
}
