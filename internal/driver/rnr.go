package driver

import (
	"sync"
	"time"
)

// A connection that is held back is looked at now and then: nobody receives from it, who would learn of a reset. A look
// wakes its goroutine, so that the looks become rarer, for the sake of a process with a thousand of them.
const (
	firstProbe = 250 * time.Millisecond
	probeEvery = 2 * time.Second
)

// awaitRoom waits until the Machine may take something in, or the connection ends.
func (c *Conn) awaitRoom() {
	for probe := firstProbe; c.cfg.RNR && c.heldBack(probe); probe = min(2*probe, probeEvery) {
		if err := c.link.Gone(); err != nil {
			c.fail(err)
		}
	}
}

// fail tells the Machine that the connection is lost, unless it has ended.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.listening() {
		c.machine.Failed(time.Now(), err)
	}
	c.release(turn{receiving: true, now: c.now()})
}

// heldBack waits for room, for so long, and reports whether there is none still.
func (c *Conn) heldBack(wait time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holdsBack() {
		if c.heldSince.IsZero() {
			c.heldSince = time.Now()
		}
		if c.room == nil {
			c.room = sync.NewCond(&c.mu)
		}
		probe := time.AfterFunc(wait, c.wakeReceiver)
		c.room.Wait()
		probe.Stop()
	}
	held := c.holdsBack()
	if !held {
		c.heldSince = time.Time{}
	}
	return held
}

// isHeldBack reports whether nothing is to be received for now, to a consumer that receives for itself.
func (c *Conn) isHeldBack() bool {
	if !c.cfg.RNR {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holdsBack()
}

// HeldBack returns for how long the receiving goroutine has taken in nothing, because too much waits for receives. It
// returns 0 while it takes in what comes, and for a request that waits for no answer: asked says that the peer answers
// the request itself.
func (c *Conn) HeldBack(asked bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heldSince.IsZero() || !c.holdsBack() || !asked && !c.machine.AwaitsAnswer() {
		return 0
	}
	return time.Since(c.heldSince)
}

// holdsBack reports whether nothing is to be received for now.
func (c *Conn) holdsBack() bool { return c.listening() && c.machine.HoldsBack() }

// wakeReceiver wakes who waits for room. It takes the lock, so that a goroutine that has looked and is about to wait
// does not miss it.
func (c *Conn) wakeReceiver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tellRoom()
}

// signalRoom wakes who waits for room, if there is some.
func (c *Conn) signalRoom() {
	if c.cfg.RNR && !c.holdsBack() {
		c.tellRoom()
	}
}

// tellRoom wakes who waits for room. The caller holds the lock.
func (c *Conn) tellRoom() {
	if c.room != nil {
		c.room.Broadcast()
	}
}

// Ready lets the Sends go on that wait, after a receive was posted to the Shared Receive Queue.
func (c *Conn) Ready() {
	c.mu.Lock()
	c.release(c.ready())
}

// ready tells the Machine that a receive was posted, and returns the turn to end with. The idle timeout begins anew:
// the consumer took its time, and not the peer.
func (c *Conn) ready() turn {
	now := time.Now()
	if c.machine.ReceiverNotReady() && c.machine.Ready(now) {
		c.watch.moved = now
	}
	return turn{now: now}
}

// HoldsTooMuch ends the connection to make room for what others hold.
func (c *Conn) HoldsTooMuch(why error) {
	c.mu.Lock()
	now := time.Now()
	c.machine.HoldsTooMuch(now, why)
	c.release(turn{now: now})
}
