package usertcp

import (
	"cmp"
	"sync/atomic"
	"syscall"
	"time"
)

// A vigil looks at a connection from time to time until its end is known.
type vigil struct{ timer atomic.Pointer[time.Timer] }

// after has look called later, unless the end is known by then.
func (v *vigil) after(d time.Duration, c *Conn, look func()) {
	v.timer.Store(time.AfterFunc(d, look))
	select {
	case <-c.end.told:
		v.stop()
	default:
	}
}

// stop ends the vigil.
func (v *vigil) stop() {
	if t := v.timer.Load(); t != nil {
		t.Stop()
	}
}

// A patience ends a connection that was closed when its peer has acknowledged nothing for [Config].CloseTimeout.
// gVisor's own option counts from the first byte that was sent again until nothing is outstanding: on a path that
// loses packets it ends connections that go on.
type patience struct {
	vigil
	una   uint32 // at the last look
	quiet int    // looks since it was another
}

// looks is how often it is looked in each CloseTimeout.
const looks = 4

// wait looks again and again.
func (p *patience) wait(c *Conn) {
	p.after(max(cmp.Or(c.stack.cfg.CloseTimeout, time.Minute)/looks, 1), c, func() {
		if p.lost(c.AckProgress()) {
			c.giveUp()
		} else {
			p.wait(c)
		}
	})
}

// lost takes what is acknowledged by now, and reports whether that has not grown for too long.
func (p *patience) lost(una uint32) bool {
	p.quiet++
	if una != p.una {
		p.una, p.quiet = una, 0
	}
	return p.quiet >= looks
}

// giveUp resets a connection whose peer acknowledges nothing.
func (c *Conn) giveUp() {
	c.mu.Lock()
	if c.failed == nil {
		c.failed = syscall.ETIMEDOUT
	}
	c.mu.Unlock()
	c.ep.Abort()
}
