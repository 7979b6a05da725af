package tcp

import "time"

// A consumer that polls finds by itself what arrives. The system wakes a thread for the same octets all the same, that of Go's
// poller, and with it the receiving goroutine, which find nothing and have taken a processor for that: a quarter of what a short
// message costs, and much of its time where every processor is somebody's who polls. So, while one polls without a pause, the
// connection is hushed: the system is to wake nobody for less than hushOctets (SO_RCVLOWAT). More than that is for a thread
// that helps out, and the end of a connection wakes as ever.
//
// It ends with the first who begins to wait (Take, LookOut), and otherwise soon after the last polls, by a timer: what arrives for
// nobody, such as a Write or a Read Request of the peer's, waits for twice hushTime at most, once. What is there when it ends
// wakes the receiving goroutine then. One who polls hundreds of connections by turns does not hush them for long: a timer for
// each would cost more than it spares.
type hush struct { // guarded by the role's lock
	timer *time.Timer
	every time.Duration
	seen  uint32 // polls when it was set
	setFn func(fd uintptr)
	want  int
	done  bool
}

const (
	hushAfter  = 256 // polls
	hushPolls  = 64  // at least, in hushTime
	hushOctets = 32 << 10
	hushTime   = 2 * time.Millisecond
)

// HushDue reports whether there were so many polls that the caller hushes the connection, unless somebody waits for what arrives.
func (c *Conn) HushDue() bool { return c.rx.due.Load() && c.rx.due.CompareAndSwap(true, false) }

// polled counts a poll.
func (x *rx) polled() {
	if x.polls++; canHush && x.polls%hushAfter == 0 {
		x.due.Store(true)
	}
}

// pollsSoFar reports how many polls there were, or false while somebody reads.
func (x *rx) pollsSoFar() (n uint32, ok bool) {
	if !x.mu.TryLock() {
		return 0, false
	}
	defer x.mu.Unlock()
	return x.polls, true
}

// Hush hushes the connection if nobody waits in Recv for a consumer's sake. Who begins to wait in another way after that, and before the caller has
// looked once more, may have missed it: LookOut is for that, too.
func (c *Conn) Hush() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hushed || r.state == taken || r.state == over || c.isAhead.Load() {
		return
	}
	if r.hush == nil {
		r.hush = &hush{every: hushTime}
	}
	if r.hushed = c.raw.wakeFrom(r.hush, hushOctets); r.hushed {
		c.lookAfterPolls()
	}
}

// lookAfterPolls has the timer look how many polls there are from now on. The caller holds the role's lock.
func (c *Conn) lookAfterPolls() {
	h := c.role.hush
	if n, ok := c.rx.pollsSoFar(); ok { // who reads at this moment polls once more
		h.seen = n
	}
	if h.timer == nil {
		h.timer = time.AfterFunc(h.every, c.pollsOn)
		return
	}
	h.timer.Reset(h.every)
}

// pollsOn ends the hush if there were few polls since the timer was set.
func (c *Conn) pollsOn() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hushed {
		return
	}
	if n, ok := c.rx.pollsSoFar(); ok && n-r.hush.seen < hushPolls {
		c.unhush()
		return
	}
	c.lookAfterPolls()
}

// unhush has whatever arrives wake its reader again, and what is there. The caller holds the role's lock.
func (c *Conn) unhush() {
	if r := &c.role; r.hushed {
		r.hushed = false
		r.hush.timer.Stop()
		c.raw.wakeFrom(r.hush, 1)
	}
}
