package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A deadline ends the waiting of one direction's calls, by a context that stays the same until it has ended.
type deadline struct {
	ctx    atomic.Pointer[context.Context] // It is what the calls wait with; set under mu.
	mu     sync.Mutex
	cancel context.CancelFunc
	timer  *time.Timer
	over   bool // the connection is closed: no time puts that off
}

func (d *deadline) init() {
	ctx, cancel := context.WithCancel(context.Background())
	d.ctx.Store(&ctx)
	d.cancel = cancel
}

// set has calls end at a time; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over {
		return
	}
	if d.context().Err() != nil {
		d.init()
	}
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.cancel()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() { d.fire(&timer) })
	d.timer = timer
}

// fire ends the calls, unless the deadline has been set anew.
func (d *deadline) fire(timer **time.Timer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == *timer {
		d.cancel()
	}
}

// end ends all calls, for good.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.cancel()
}

// context is what a call waits with.
func (d *deadline) context() context.Context { return *d.ctx.Load() }

// A gate lets one call of a direction in at a time.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits for its turn, until the context has ended. A context that has ended before lets nobody in.
func (g gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select { // of one channel: this costs a fifth of a select of two
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }

// SetDeadline sets the deadlines of Read and Write, and of the calls that are like them.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when calls of Read and WriteTo give up waiting, those that wait now included. A zero time is never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.rd, t) }

// SetWriteDeadline sets when calls of Write, ReadFrom, WriteAt and Map give up waiting, as SetReadDeadline does. The count of a Write tells what it
// has sent by then, and the stream goes on after that.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.wr, t) }

func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	if c.isClosed() {
		return c.opError("set", errClosed)
	}
	d.set(t)
	return nil
}
