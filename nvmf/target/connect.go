package target

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
)

// settle is how long an older controller of the same host, by another way, may go on with what it has begun when the
// host connects again. More than a command under way takes, and less than hosts wait.
const (
	settle  = time.Second
	stopped = 20 * time.Second
)

// errReplaced ends a controller whose host has connected again.
var errReplaced = errors.New("nvme: the host has connected again")

// wrong is the status for a field of a Connect, of which the result tells.
func (r *request) wrong(offset uint16, inData bool, flags capsule.Status) capsule.Status {
	r.result = capsule.ConnectOffset(offset, inData)
	return capsule.InvalidParameter | flags
}

// connect makes the controller of an Admin Queue, or adds an I/O queue to it. Of several Connects that a queue has at a
// time one may do that.
func (r *request) connect() (status capsule.Status, err error) {
	if r.ctrl != nil || !r.q.claim(true) {
		return capsule.SequenceError | capsule.DNR, nil
	}
	defer func() {
		if status != capsule.Success || err != nil {
			r.q.claim(false)
		}
	}()
	return r.admit(r.cmd.Connect())
}

// admit judges a Connect, and carries it out.
func (r *request) admit(n capsule.Connect) (capsule.Status, error) {
	switch {
	case n.Format != 0:
		return capsule.IncompatibleFormat | capsule.DNR, nil
	case n.QID != r.q.qid:
		return r.wrong(capsule.OffsetQID, false, capsule.DNR), nil
	case n.SQSize == 0, int(n.SQSize) >= r.q.depth:
		return r.wrong(capsule.OffsetSQSize, false, capsule.DNR), nil
	}
	content, status, err := r.fetch(capsule.ConnectDataLen)
	if status != capsule.Success || err != nil {
		return status, err
	}
	data, err := capsule.ParseConnectData(content)
	switch bad := new(capsule.Error); {
	case errors.As(err, &bad):
		return r.wrong(uint16(bad.Offset), true, capsule.DNR), nil
	case data.SubsystemNQN != r.q.t.cfg.NQN && (data.SubsystemNQN != capsule.DiscoveryNQN || n.QID != 0):
		return r.wrong(capsule.OffsetSubsystem, true, capsule.DNR), nil
	case !r.q.t.cfg.allows(data.HostNQN):
		return capsule.InvalidHost | capsule.DNR, nil
	}
	r.q.slot.Stay(true) // no sooner: a host that may not connect, or that does not let its Connect be read, gives way
	if n.QID == 0 {
		return r.connectAdmin(n, data), nil
	}
	return r.connectIO(n, data), nil
}

// connectAdmin makes a controller, when everything has come to rest that an older one of the same host has begun, and
// one by the same way has ended: the host may send the same commands again, and what it sends after that must not be
// overwritten by them.
func (r *request) connectAdmin(n capsule.Connect, data capsule.ConnectData) capsule.Status {
	t := r.q.t
	if data.ControllerID != capsule.AnyController {
		return r.wrong(capsule.OffsetController, true, capsule.DNR)
	}
	r.q.lone.Reset(stopped + connectTimeout) // the host has done its part
	if data.SubsystemNQN != capsule.DiscoveryNQN && !t.settled(r.q, data.HostID) {
		return capsule.ControllerBusy
	}
	t.mu.Lock()
	if len(t.controllers) >= t.cfg.Controllers || t.draining {
		t.mu.Unlock()
		return capsule.ControllerBusy
	}
	c := t.newController(r.q, n, data)
	t.mu.Unlock()
	r.q.join(c, n)
	r.result = uint64(c.id)
	t.cfg.Logger.Info("host connected", "peer", r.q.qp.RemoteAddr(), "host", data.HostNQN, "controller", c.id,
		"subsystem", data.SubsystemNQN)
	return capsule.Success
}

// connectIO adds a queue to a controller of the same host. One that is gone is made again when the host connects again.
func (r *request) connectIO(n capsule.Connect, data capsule.ConnectData) capsule.Status {
	t := r.q.t
	t.mu.Lock()
	c := t.controllers[data.ControllerID]
	t.mu.Unlock()
	if c == nil || c.discovery || c.host.HostID != data.HostID || c.host.HostNQN != data.HostNQN {
		return r.wrong(capsule.OffsetController, true, 0)
	}
	if status := c.attach(r.q); status != capsule.Success {
		if status.Code() == capsule.InvalidParameter {
			r.result = capsule.ConnectOffset(capsule.OffsetQID, false)
		}
		return status
	}
	r.q.join(c, n)
	r.result = uint64(c.id)
	return capsule.Success
}

// claim has a Connect be the only one of its queue, or lets go of that, and of the place that it may have been to keep.
// It reports whether that is so.
func (q *queue) claim(on bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if on && q.claimed {
		return false
	}
	q.claimed = on
	if !on {
		q.slot.Stay(false)
	}
	return true
}

// join has the queue be one of a controller.
func (q *queue) join(c *controller, n capsule.Connect) {
	q.lone.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctrl, q.entries, q.noFlow = c, int(n.SQSize)+1, n.Attr&capsule.AttrNoFlow != 0
}

// settled ends the older controllers of a host by the way of a queue, and waits until what all of the host's had begun
// is carried out. A queue by another way on which something needs longer than settle, as the host does not answer a
// Read, is ended: that comes to rest then, unless a Backend does not answer.
func (t *Target) settled(q *queue, host [16]byte) bool {
	older := t.older(host)
	for _, c := range older {
		if !t.cfg.Multipath && c.way == wayOf(q.qp) {
			c.abortAll(errReplaced) // nothing is begun on it any more, whatever still arrives
		}
	}
	ctx, cancel := context.WithTimeout(q.ctx, stopped)
	defer cancel()
	soon, cancelSoon := context.WithTimeout(ctx, settle)
	defer cancelSoon()
	for _, r := range begun(older) {
		select {
		case <-r.done:
			continue
		case <-soon.Done():
			r.q.abort(errReplaced)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// older returns the controllers of a host.
func (t *Target) older(host [16]byte) (all []*controller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.controllers {
		if c.host.HostID == host && !c.discovery {
			all = append(all, c)
		}
	}
	return all
}

// begun returns the commands that are under way on controllers.
func begun(controllers []*controller) (all []*request) {
	for _, c := range controllers {
		for _, q := range c.connected() {
			all = append(all, q.underWay()...)
		}
	}
	return all
}

// A way is between two addresses, without ports.
type way struct{ host, target string }

func wayOf(qp *iwarp.QP) way { return way{hostOf(qp.RemoteAddr()), hostOf(qp.LocalAddr())} }

// hostOf is an address without its port, if it has one.
func hostOf(at net.Addr) string {
	if host, _, err := net.SplitHostPort(at.String()); err == nil {
		return host
	}
	return at.String()
}
