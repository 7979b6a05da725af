package target

import "github.com/goiwarp/iwarp/internal/capsule"

// setFeature takes what a host wants, as far as it can be had.
func (r *request) setFeature() (capsule.Status, error) {
	f, c := r.cmd.Features(), r.ctrl
	if status := r.checkData(0); status != capsule.Success {
		return status, nil
	}
	switch {
	case f.Save:
		return capsule.FeatureNotSaveable | capsule.DNR, nil
	case f.Feature == capsule.FeatureKeepAlive:
		c.expect(f.Value)
	case f.Feature == capsule.FeatureAsyncEvent:
		c.want(f.Value)
	case f.Feature == capsule.FeatureQueues && !c.discovery:
		return r.grant(capsule.Queues(f.Value)), nil
	default:
		return capsule.InvalidField | capsule.DNR, nil
	}
	return capsule.Success, nil
}

// grant says how many I/O queues there may be: each is one of both kinds.
func (r *request) grant(q capsule.Queues) capsule.Status {
	const none = 1 << 16 // 0xFFFF, less one, is no number
	if q.Submission() == none || q.Completion() == none {
		return capsule.InvalidField | capsule.DNR
	}
	n := min(q.Submission(), q.Completion(), r.q.t.cfg.Queues)
	r.ctrl.grant(n)
	r.result = uint64(capsule.NewQueues(n))
	return capsule.Success
}

// getFeature tells what there is now.
func (r *request) getFeature() (capsule.Status, error) {
	f := r.cmd.Features()
	if f.Select != 0 {
		return capsule.InvalidField | capsule.DNR, nil
	}
	if f.Feature == capsule.FeatureHostID {
		return r.give(r.ctrl.host.HostID[:])
	}
	value, ok := r.ctrl.feature(f.Feature)
	if !ok {
		return capsule.InvalidField | capsule.DNR, nil
	}
	r.result = uint64(value)
	return r.checkData(0), nil
}

// give returns bytes as the data of a command.
func (r *request) give(data []byte) (capsule.Status, error) {
	return r.giveFilled(data, len(data))
}

// giveFilled returns n bytes as the data of a command: those that there are, and zeros after them.
func (r *request) giveFilled(data []byte, n int) (capsule.Status, error) {
	if status := r.offer(n); status != capsule.Success {
		return status, nil
	}
	room, err := r.buffer(n)
	if err != nil {
		return 0, err
	}
	clear(room[copy(room, data):])
	return capsule.Success, nil
}

// feature returns the value of one.
func (c *controller) feature(f capsule.Feature) (uint32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f == capsule.FeatureKeepAlive:
		return uint32(c.keepAlive.Milliseconds()), true
	case f == capsule.FeatureAsyncEvent:
		return c.events, true
	case c.discovery:
		return 0, false
	case f == capsule.FeatureQueues:
		return uint32(capsule.NewQueues(c.granted)), true
	case f == capsule.FeatureWriteCache:
		return 1, true
	}
	return 0, false
}

// want says which events a host wants.
func (c *controller) want(events uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = events
}

// grant says how many I/O queues there may be.
func (c *controller) grant(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted = n
}
