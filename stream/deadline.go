package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A direction lets one call in at a time, and ends its waiting at the deadline.
type direction struct {
	deadline
	gate gate
}

func (d *direction) init() {
	d.deadline.init()
	d.gate = make(gate, 1)
}

// enter waits until the call may go on in its direction. If it returns no error, the caller must leave the gate.
func (c *Conn) enter(d *direction) error {
	if d.gate.enter(d.context()) == nil {
		return nil
	}
	if c.isClosed() {
		return errClosed
	}
	return errDeadline
}

// A gate holds the one call that is in a direction.
type gate chan struct{}

// enter waits until the gate is free, or the context has ended. It fails if the context had ended before.
func (g gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select { // A select of one channel takes a fifth of the time of the one below.
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

// A deadline has a context with which the calls of a direction wait. The context is replaced only after it has ended:
// so a new deadline holds for calls that wait already.
type deadline struct {
	ctx    atomic.Pointer[context.Context] // set under mu
	mu     sync.Mutex
	cancel context.CancelFunc
	timer  *time.Timer
	closed bool // the Conn is closed: set has no effect
}

func (d *deadline) init() {
	ctx, cancel := context.WithCancel(context.Background())
	d.ctx.Store(&ctx)
	d.cancel = cancel
}

// set has calls end at a time. The zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.closed {
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

// fire ends the calls, unless the deadline was changed after the timer went off.
func (d *deadline) fire(timer **time.Timer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == *timer {
		d.cancel()
	}
}

// close ends all calls, those of the future included.
func (d *deadline) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.cancel()
}

// context returns what a call waits with.
func (d *deadline) context() context.Context { return *d.ctx.Load() }

// SetDeadline sets the deadlines of both directions: see SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when calls of Read and WriteTo stop waiting, including those that wait now. Their error then
// wraps os.ErrDeadlineExceeded. The zero time is never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.made() {
		return c.opError("set", errNoConn)
	}
	return c.setDeadline(&c.rd, t)
}

// SetWriteDeadline sets when calls of Write, ReadFrom, WriteAt, Map and CloseWrite stop waiting, as SetReadDeadline
// does. Write returns how many bytes it has sent by then, and the stream goes on after those.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if !c.made() {
		return c.opError("set", errNoConn)
	}
	return c.setDeadline(&c.wr, t)
}

func (c *Conn) setDeadline(d *direction, t time.Time) error {
	if c.isClosed() {
		return c.opError("set", errClosed)
	}
	d.set(t)
	return nil
}
