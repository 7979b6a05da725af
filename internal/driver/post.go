package driver

import (
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// Queues is a Machine that takes work, with the depths of its queues. What is posted goes through it, with or without a
// connection.
type Queues struct {
	Machine              *engine.Machine
	SendDepth, RecvDepth int
	Unpolled             *Unpolled
}

// PostSend posts to the Send Queue, if that has room: a request keeps its entry until its completion is polled.
func (q Queues) PostSend(w *engine.SendWork) error {
	if n, _ := q.Machine.Outstanding(); n+int(q.Unpolled.Sends.Load()) >= q.SendDepth {
		return engine.ErrQueueFull
	}
	return q.Machine.PostSend(w)
}

// PostSends posts a list. It stops at the first that cannot be posted; with whole, none is posted then. It returns
// how many could be.
func (q Queues) PostSends(all []engine.SendWork, whole bool) (n int, err error) {
	from := q.Machine.Posted()
	for n < len(all) {
		if err = q.PostSend(&all[n]); err != nil {
			break
		}
		n++
	}
	if err != nil && whole {
		q.Machine.TakeBackSends(from)
	}
	return n, err
}

// PostReceive posts to the Receive Queue.
func (q Queues) PostReceive(w *engine.RecvWork) error {
	if _, n := q.Machine.Outstanding(); n+int(q.Unpolled.Recvs.Load()) >= q.RecvDepth {
		return engine.ErrQueueFull
	}
	return q.Machine.PostReceive(w)
}

func (c *Conn) queues() Queues {
	return Queues{c.machine, c.cfg.SendDepth, c.cfg.RecvDepth, c.cfg.Unpolled}
}

// takes returns ErrEnded if the connection takes no more work, as it ends.
func (c *Conn) takes() error {
	if c.state != Open || c.machine.State() != engine.RTS {
		return ErrEnded
	}
	return nil
}

// PostSend posts a request that sends so many bytes. If the caller waits for it, it is sent at once, and else with
// those that follow closely. The error is ErrEnded, or the Machine's.
func (c *Conn) PostSend(w *engine.SendWork, size int, waits bool) error {
	c.mu.Lock()
	err := c.takes()
	if err == nil {
		err = c.queues().PostSend(w)
	}
	switch {
	case err != nil:
		c.mu.Unlock()
	case waits:
		c.release(turn{mode: sendOwn, now: c.now(), own: c.machine.Posted()})
	default:
		c.releasePosted(1, size, time.Time{})
	}
	return err
}

// PostSends posts a list of requests that sends so many bytes, by a call that began at a time. It stops at the first
// that cannot be posted; with whole, none is posted then. It returns how many could be.
func (c *Conn) PostSends(all []engine.SendWork, size int, began time.Time, whole bool) (n int, err error) {
	c.mu.Lock()
	if err = c.takes(); err == nil {
		n, err = c.queues().PostSends(all, whole)
	}
	switch {
	case n == 0:
		c.mu.Unlock()
	case whole:
		c.release(turn{mode: sendOwn, now: c.now(), own: c.machine.Posted()})
	default:
		c.releasePosted(n, size, began)
	}
	return n, err
}

// PostReceive posts a receive.
func (c *Conn) PostReceive(w *engine.RecvWork) error {
	c.mu.Lock()
	err := c.takes()
	if err == nil {
		err = c.queues().PostReceive(w)
	}
	if err != nil || !c.machine.ReceiverNotReady() {
		c.mu.Unlock()
		return err
	}
	c.release(c.ready())
	return nil
}

// TakeBackReceive takes a receive back that nothing has come for. Mute tells that requests wait for the Initiator's
// first FPDU.
func (c *Conn) TakeBackReceive(cookie any) (ok, mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.TakeBackReceive(cookie), c.machine.Mute()
}
