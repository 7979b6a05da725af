package tcp

import "time"

// A consumer that polls finds by itself what arrives. The system wakes a thread for the same bytes all the same,
// that of Go's poller, and with it the receiving goroutine, which find nothing and have taken a processor for that: a
// quarter of what a short message costs, and much of its time where every processor is somebody's who polls. So,
// while one polls without a pause, the connection is quiet: the system is to wake nobody for less than suppressBytes
// (SO_RCVLOWAT). More than that is for a thread that helps out, and the end of a connection wakes as ever.
//
// It ends with the first who begins to wait and does not look (AcquireRole, RearmReads), before one who looks
// sleeps (look.go), and otherwise soon after the last polls, by a timer: what arrives for nobody, such as a Write
// or a Read Request of the peer's, waits for twice suppressTime at most, once. What is there when it ends wakes the
// receiving goroutine then. One who polls hundreds of connections by turns does not suppress them for long: a timer
// for each would cost more than it spares.
type suppression struct { // guarded by the role's lock
	timer *time.Timer
	every time.Duration
	seen  uint32 // polls when the timer was set
	setFn func(fd uintptr)
	want  int
	done  bool
}

const (
	suppressAfter = 256 // polls
	suppressPolls = 64  // at least, in suppressTime
	suppressBytes = 32 << 10
	suppressTime  = 2 * time.Millisecond
)

// SuppressDue reports whether there were so many polls that the caller suppresses wake-ups, unless somebody waits for
// what arrives.
func (c *Conn) SuppressDue() bool { return c.rx.due.Load() && c.rx.due.CompareAndSwap(true, false) }

// polled counts a poll.
func (x *rx) polled() {
	if x.polls++; canSuppress && x.polls%suppressAfter == 0 {
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

// SuppressWakeUps suppresses wake-ups, unless a consumer has the role of the receiver. The caller then looks once more
// whether anybody waits in another way, and calls RearmReads if so.
func (c *Conn) SuppressWakeUps() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suppressed || r.state == taken || r.state == over || c.isAhead.Load() {
		return
	}
	if c.suppress(); r.suppressed {
		c.lookAfterPolls()
	}
}

// suppress suppresses wake-ups. The caller holds the role's lock.
func (c *Conn) suppress() {
	r := &c.role
	if r.suppression == nil {
		r.suppression = &suppression{every: suppressTime}
	}
	r.suppressed = c.raw.wakeFrom(r.suppression, suppressBytes)
}

// lookAfterPolls has the timer look how many polls there are from now on. The caller holds the role's lock.
func (c *Conn) lookAfterPolls() {
	h := c.role.suppression
	if n, ok := c.rx.pollsSoFar(); ok { // who reads at this moment polls once more
		h.seen = n
	}
	if h.timer == nil {
		h.timer = time.AfterFunc(h.every, c.pollsOn)
		return
	}
	h.timer.Reset(h.every)
}

// pollsOn ends the suppression if there were few polls since the timer was set.
func (c *Conn) pollsOn() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.suppressed {
		return
	}
	if n, ok := c.rx.pollsSoFar(); ok && n-r.suppression.seen < suppressPolls {
		c.allowWakeUps()
		return
	}
	c.lookAfterPolls()
}

// allowWakeUps ends the suppression. What is there already wakes its reader too. The caller holds the role's lock.
func (c *Conn) allowWakeUps() {
	if r := &c.role; r.suppressed {
		r.suppressed = false
		if r.suppression.timer != nil {
			r.suppression.timer.Stop()
		}
		c.raw.wakeFrom(r.suppression, 1)
	}
}
