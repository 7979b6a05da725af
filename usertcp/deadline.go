package usertcp

import (
	"sync"
	"time"
)

// A deadline can be moved while others wait for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	times int           // how often it was set: a timer of before does nothing
	over  chan struct{} // closed while the deadline has passed
}

func (d *deadline) init() { d.over = make(chan struct{}) }

// passed returns a channel that is closed when the deadline passes. Where one had passed and another was set, the
// channel is a new one.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set sets the deadline; the zero time is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	d.times++
	if t.IsZero() {
		return
	}
	if wait := time.Until(t); wait > 0 {
		nth := d.times
		d.timer = time.AfterFunc(wait, func() { d.pass(nth) })
		return
	}
	close(d.over)
}

func (d *deadline) pass(nth int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if nth == d.times {
		close(d.over)
	}
}
