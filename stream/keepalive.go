package stream

import (
	"time"

	"github.com/goiwarp/iwarp"
)

// keepAlive is guarded by Conn.mu.
type keepAlive struct {
	every  time.Duration
	timer  *time.Timer
	active bool // something was sent since the timer was started
}

func (k *keepAlive) sent() { k.active = true }

func (k *keepAlive) stop() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// SetKeepAlive sends an RDMA Write of no octets whenever the connection has been quiet for that long, as rsockets do: TCP then finds out
// whether the peer is there. If zero or negative, none is sent, which is the default. TCP's own probes are those of iwarp.QPConfig.KeepAlive.
func (c *Conn) SetKeepAlive(every time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", errClosed)
	}
	c.alive.stop()
	c.alive.every = every
	if every > 0 {
		c.alive.timer = time.AfterFunc(every, c.keepAlive)
	}
	return nil
}

// keepAlive is the timer's.
func (c *Conn) keepAlive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.alive
	if k.timer == nil {
		return
	}
	if !k.active && c.qp.Query().Sends == 0 { // else TCP has something to find out by
		// It names no memory: no octets need none.
		_ = c.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true})
	}
	k.active = false
	k.timer.Reset(k.every)
}
