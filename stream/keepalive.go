package stream

import (
	"time"

	"github.com/goiwarp/iwarp"
)

// keepAlive is guarded by Conn.mu.
type keepAlive struct {
	every  time.Duration
	timer  *time.Timer // nil: it is off
	active bool        // something was sent since the timer was started
}

func (k *keepAlive) sent() { k.active = true }

func (k *keepAlive) stop() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// SetKeepAlivePeriod sends an empty RDMA Write whenever this end has sent nothing for that long, as rsockets do. TCP
// then notices if the peer is gone. Zero or less sends none, which is the default. iwarp.QPConfig.KeepAlive turns on
// the probes of TCP instead.
func (c *Conn) SetKeepAlivePeriod(every time.Duration) error {
	if !c.made() {
		return c.opError("set", errNoConn)
	}
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

// keepAlive is called by the timer.
func (c *Conn) keepAlive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.alive
	if k.timer == nil {
		return
	}
	if !k.active && c.qp.Query().Sends == 0 { // TCP probes by itself while it has something to send
		_ = c.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true}) // of no bytes: it needs no STag
	}
	k.active = false
	k.timer.Reset(k.every)
}
