package tcp

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"time"
)

// A role says which goroutine receives on a connection. There is one at most, except for a
// TryRecv that takes what is there:
//
//	state     who reads                  ends by
//	receiver  the receiving goroutine    YieldRole: to free. End: to over.
//	free      nobody; the bell is armed  The bell rings: to receiver. AcquireRole: to taken.
//	taken     a consumer                 ReleaseRole: to free. End: to over.
//	over      nobody, for good           -
//
// In free, bytes, a FIN and a RST do not wait for a consumer that may not come: they ring the
// bell, at once if they were there when it was armed, and the receiving goroutine, which waits
// for that, goes on. While a consumer reads, the bell is not armed, so that what arrives wakes
// the consumer alone.
//
// To arm and to disarm the bell for every message is a tenth of the time of a short one. Where
// consumers have come back often enough (steady), ReleaseRole therefore does not arm it, but starts the
// bell's timer, if that does not run; when it rings and nobody reads, the bell is armed. So bytes
// that arrive after a consumer has left for good wait for no longer than that (lazy), once; before
// the next time, the receiving goroutine has had the role, and consumers have been steady again.
// A FIN or a RST rings the bell whether it is armed or not: who waits for the end of a connection, or for
// its event, is not known here.
// Who waits without reading (RearmReads) is not to wait for that: then ReleaseRole arms it at once.
// A ring wakes a goroutine and mostly a thread, which costs as much as several messages: after some
// leads (postpone) the timer begins anew, so that it does not ring while they come quickly. Where they come so
// slowly that it rings for nearly each (slow), as on a thousand busy connections, ReleaseRole arms the bell again, and
// tries the timer more and more rarely.
//
// A consumer waits in Recv, as the receiving goroutine does. What else it waits for, its
// completion from elsewhere or the end of its context, comes with an Interrupt: a read
// deadline in the past, which Recv returns for. The consumer calls Announce, looks whether there
// is something already, and reads; an Interrupt after Announce is not lost. The deadline is
// taken back before anybody else has the role.
//
// Close takes the bell down, which wakes the receiving goroutine. If a consumer has the role
// then, that finds the connection closed as it reads, and the receiving goroutine waits until the
// consumer has said what came of it, by End or ReleaseRole.
//
// Where there is no bell, the receiving goroutine always reads.
type role struct {
	mu          sync.Mutex
	moved       *sync.Cond   // ReleaseRole or End was called, and there is no bell to tell of it; nil before there was one
	bell        *bell        // nil: not made yet
	suppression *suppression // nil: never yet
	state       roleState
	noBell      bool  // there is no bell, or it is closed
	armed       bool  // the bell is
	withheld    bool  // the role is free, and only for the receiving goroutine
	rearmReads  bool  // the next ReleaseRole arms the bell at once
	timed       bool  // the bell rings in a while in any case
	rings       uint8 // of the timer, since consumers last came quickly
	awaits      bool  // the consumer reads, or is about to: it called Announce
	interrupted bool  // a read deadline is set
	renewed     bool  // a read deadline is set for the receiving goroutine: see Renew
	suppressed  bool  // bytes wake nobody: see wakeups.go
	once        bool  // of the consumer: the time before it was another context, and this one may not come back
	leads       int32 // how often it was taken since it became free
	before      int32 // leads when the timer was set
	lazyFrom    int32 // leads after which the timer is used

	// What follows is of the consumer that has the role.
	watched <-chan struct{} // Done of the context that interrupts it
	stop    func() bool     // ends that
	last    <-chan struct{} // Done of the context watched last
}

type roleState uint8

const (
	receiver roleState = iota
	free
	taken
	over
)

// CanYieldRole reports whether YieldRole would do anything.
func (c *Conn) CanYieldRole() bool {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.raw != nil && canRing && !r.noBell && !c.isAhead.Load()
}

// YieldRole is called by the receiving goroutine, which lets consumers receive for
// themselves. It returns when something has come and none of them is there to receive it; leads
// is how often one was. If a consumer has found the end of the connection, again is false.
func (c *Conn) YieldRole() (leads int, again bool) {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.hasBell() {
		return 0, true
	}
	c.endRenewal()
	r.state, r.leads, r.lazyFrom, r.withheld = free, 0, steady, false
	c.guard()
	for r.state != over {
		r.mu.Unlock()
		timeout := r.bell.wait()
		r.mu.Lock()
		// A bell that is closed does not wait: until the consumer is done, this would go round and round.
		if r.state == taken && r.noBell {
			r.moved.Wait()
		}
		switch {
		case timeout && !r.noBell:
			c.timeout()
		case r.state == free:
			r.takeBack()
			return int(r.leads), true
		}
	}
	return int(r.leads), false
}

// takeBack gives the role to the receiving goroutine.
func (r *role) takeBack() {
	r.state, r.armed = receiver, false
	if r.timed && !r.noBell {
		r.timed = !r.bell.ringAfter(0)
	}
}

// hasBell makes the bell, the first time, and reports whether there is one. The caller holds
// the role's lock.
func (c *Conn) hasBell() bool {
	r := &c.role
	if r.bell == nil && !r.noBell {
		r.moved = sync.NewCond(&r.mu)
		if c.raw != nil {
			r.bell = c.raw.newBell()
		}
		r.noBell = r.bell == nil
	}
	return !r.noBell
}

const (
	steady   = 64                   // leads after which consumers are taken to come back
	lazy     = 4 * time.Millisecond // how long the role may be free without the bell
	postpone = 32                   // leads after which the timer begins anew
	slow     = 2                    // rings in a row after which the timer does not pay
	slowest  = 8                    // rings after which it is tried no more rarely
)

// arm has what arrives ring the bell, or not. A bell that cannot be armed is taken down,
// which wakes the receiving goroutine.
func (r *role) arm(on bool) {
	if r.armed == on {
		return
	}
	r.armed = on
	if !r.noBell && !r.bell.arm(on) {
		r.closeBell()
	}
}

// guard arms the bell while nobody reads, and gives back the receive buffer.
func (c *Conn) guard() {
	c.allowWakeUps()
	c.role.arm(true)
	c.Rest()
}

// guardSoon has the bell's timer call guard, unless somebody has the role at that moment.
func (c *Conn) guardSoon() {
	r := &c.role
	if r.timed && r.leads-r.before >= postpone {
		r.timed, r.rings = false, 0
	}
	if !r.timed {
		r.timed, r.before = r.bell.ringAfter(lazy), r.leads
	}
	if !r.timed {
		c.guard()
	}
}

// timeout is called when the timer has rung the bell. A consumer that has the role sets it anew as it leaves.
func (c *Conn) timeout() {
	r := &c.role
	r.timed, r.rings = false, min(r.rings+1, slowest)
	if r.rings >= slow {
		r.lazyFrom = r.leads + steady<<(r.rings-slow)
	}
	if r.state == free {
		c.guard()
	}
}

// closeBell takes the bell down, and no other is made.
func (r *role) closeBell() {
	if r.bell != nil && !r.noBell {
		r.bell.close()
	}
	r.noBell = true
	r.tell()
}

// AcquireRole makes the caller the one who receives, if nobody does. It then calls InterruptWith, and Announce
// and RecvTaken by turns, and last ReleaseRole or End.
func (c *Conn) AcquireRole() bool {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != free || r.noBell || r.withheld {
		return false
	}
	r.state = taken
	if !c.looks() {
		c.allowWakeUps()
	}
	c.quiet = r.suppressed // by looks, or by one who polled
	if r.leads == math.MaxInt32 {
		// half a day of short messages: it goes on as when it had just become steady
		r.leads, r.before, r.lazyFrom = steady, 0, steady
	}
	r.leads++
	r.arm(false)
	return true
}

// RearmReads arms the bell at once if the role is free, or as soon as the consumer that has it gives it up. Who begins
// to wait for what arrives, and does not read, calls it.
func (c *Conn) RearmReads() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	c.allowWakeUps()
	switch {
	case r.noBell:
	case r.state == free:
		c.guard()
	case r.state == taken:
		r.rearmReads = true
	}
}

// ReleaseRole gives the role up. With withhold, no consumer gets it before the receiving goroutine
// has had it. Others says that somebody waits who does not read.
func (c *Conn) ReleaseRole(withhold, others bool) {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	c.endWait()
	if r.once {
		r.unwatch()
	}
	r.state, r.withheld = free, withhold
	if r.leads > r.lazyFrom && !withhold && !others && !r.rearmReads {
		c.guardSoon()
	} else {
		c.guard()
	}
	r.rearmReads = false
	if r.noBell {
		r.tell()
	}
}

// tell wakes the receiving goroutine, if it waits for a consumer.
func (r *role) tell() {
	if r.moved != nil {
		r.moved.Broadcast()
	}
}

// End says that there is nothing more to be received. Whoever has the role calls it.
func (c *Conn) End() {
	if c.segments != nil {
		c.segments.ShowAhead(nil)
	}
	c.forget()
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	c.allowWakeUps()
	c.endRenewal() // AwaitEnd waits too
	r.state = over
	r.unwatch()
	r.last = nil
	r.closeBell()
}

// Close closes the connection, from whichever goroutine.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.forget()
	c.role.mu.Lock()
	defer c.role.mu.Unlock()
	c.role.closeBell()
	return err
}

// InterruptWith has the end of a context interrupt the consumer that has the role. A context that was
// watched the time before too stays so until there is another: it then costs nothing.
func (c *Conn) InterruptWith(ctx context.Context) {
	r := &c.role
	done := ctx.Done()
	if done == nil || done == r.watched {
		return
	}
	r.unwatch()
	r.watched, r.stop = done, context.AfterFunc(ctx, c.Interrupt)
	r.once, r.last = done != r.last, done
}

func (r *role) unwatch() {
	if r.stop != nil {
		r.stop()
	}
	r.watched, r.stop = nil, nil
}

// Announce says that the consumer is going to read: an Interrupt from now on ends that.
func (c *Conn) Announce() {
	c.role.mu.Lock()
	c.role.awaits = true
	c.role.mu.Unlock()
}

// Interrupt wakes the consumer that receives, if there is one.
func (c *Conn) Interrupt() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaits && !r.interrupted {
		r.interrupted = true
		c.poked.Store(true)
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// endWait undoes Announce, and takes an Interrupt back. The caller holds the role's lock.
func (c *Conn) endWait() {
	r := &c.role
	r.awaits = false
	if r.interrupted {
		r.interrupted = false
		c.poked.Store(false)
		_ = c.SetReadDeadline(time.Time{})
	}
}

// RecvTaken is Recv for the consumer that has the role. If it was interrupted, the receive
// buffer is not the caller's, and there is nothing in it.
func (c *Conn) RecvTaken() (interrupted bool, err error) {
	err = c.RecvSoon()
	c.role.mu.Lock()
	c.endWait()
	c.role.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Done()
		return true, nil
	}
	return false, err
}
