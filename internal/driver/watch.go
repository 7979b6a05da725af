package driver

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// A watch ends a connection whose peer does nothing (RFC 5042, section 6.4.2). Conn.mu guards it.
type watch struct {
	idle  time.Duration // 0: it may be idle
	rtr   time.Duration // how long the peer may owe its RTR indication; 0: it owes none
	began time.Time
	moved time.Time // when bytes were sent or received last
	// answer is how long a peer that owed us an FPDU took for it: an Initiator sends its RTR indication as soon as it
	// has our Reply.
	answer time.Duration
	owed   bool
	heard  bool // the Owner knows that the peer's first FPDU is here
	timer  *time.Timer
	// target points to the Conn until the connection has ended: the runtime may keep a stopped timer for a while, and
	// that must not keep the Conn.
	target *atomic.Pointer[Conn]
}

// watchOver begins the watch over a connection that has just come up.
func (c *Conn) watchOver() {
	now := time.Now()
	p := c.params()
	owed := p.Role == mpa.RoleResponder && p.PeerToPeer
	c.watch = watch{idle: c.cfg.IdleTimeout, rtr: c.cfg.RTRTimeout, began: now, moved: now, owed: owed}
	if at, _ := c.watch.next(); !at.IsZero() {
		target := new(atomic.Pointer[Conn])
		target.Store(c)
		c.watch.target = target
		c.watch.timer = time.AfterFunc(time.Until(at), func() {
			if c := target.Load(); c != nil {
				c.onWatch()
			}
		})
	}
}

// next returns when the connection is to be ended if nothing happens until then, and whether that is for want of the
// RTR indication.
func (w *watch) next() (at time.Time, rtr bool) {
	if w.idle > 0 {
		at = w.moved.Add(w.idle)
	}
	if by := w.began.Add(w.rtr); w.rtr > 0 && (at.IsZero() || by.Before(at)) {
		at, rtr = by, true
	}
	return at, rtr
}

// idleError says why the connection is ended. With unready, Sends that have come wait for receives.
func (w *watch) idleError(cfg *Config, rtr, unready bool) error {
	switch {
	case rtr:
		return fmt.Errorf("%w within %v: %w", cfg.ErrNoRTR, w.rtr, engine.ErrTimeout)
	case unready:
		const waiting = "and no receive was posted for Sends that have come"
		return fmt.Errorf("%w for %v, %s: %w", cfg.ErrIdle, w.idle, waiting, engine.ErrTimeout)
	}
	return fmt.Errorf("%w for %v: %w", cfg.ErrIdle, w.idle, engine.ErrTimeout)
}

// noteInput takes note that bytes were received.
func (c *Conn) noteInput(now time.Time) {
	w := &c.watch
	w.moved = now
	if w.heard || !c.machine.Heard() {
		return
	}
	w.heard, c.up.heard = true, true
	if w.owed {
		w.owed, w.answer = false, now.Sub(w.began)
	}
	w.rtr = 0
	if w.idle == 0 { // there is nothing more to watch over
		w.stop()
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.target.Store(nil)
		w.timer, w.target = nil, nil
	}
}

// onWatch ends the connection if its time is over, and looks again later if not.
func (c *Conn) onWatch() {
	c.mu.Lock()
	at, rtr := c.watch.next()
	switch {
	case c.watch.timer == nil: // it was stopped meanwhile
	case time.Now().Before(at):
		c.watch.timer.Reset(time.Until(at))
	default:
		c.machine.Abort(c.watch.idleError(&c.cfg, rtr, c.machine.ReceiverNotReady()))
	}
	c.release(turn{now: c.now()})
}
