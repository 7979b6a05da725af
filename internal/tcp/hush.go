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

// Polled counts a poll. If it reports true, the caller hushes the connection, unless somebody waits for what arrives.
func (c *Conn) Polled() bool { return c.role.polls.Add(1)%hushAfter == 0 && canHush && c.raw != nil }

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
		r.hush = new(hush)
	}
	if r.hushed = c.raw.wakeFrom(r.hush, hushOctets); r.hushed {
		r.hush.after(r.polls.Load(), c.pollsOn)
	}
}

// after has the timer look after those who have polled so often.
func (h *hush) after(polls uint32, look func()) {
	if h.seen = polls; h.timer == nil {
		h.timer = time.AfterFunc(hushTime, look)
		return
	}
	h.timer.Reset(hushTime)
}

// pollsOn ends the hush if there were few polls since the timer was set.
func (c *Conn) pollsOn() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	switch polls := r.polls.Load(); {
	case !r.hushed:
	case polls-r.hush.seen >= hushPolls:
		r.hush.after(polls, c.pollsOn)
	default:
		c.unhush()
	}
}

// unhush has whatever arrives wake its reader again, and what is there. The caller holds the role's lock.
func (c *Conn) unhush() {
	if r := &c.role; r.hushed {
		r.hushed = false
		r.hush.timer.Stop()
		r.polls.Store(0)
		c.raw.wakeFrom(r.hush, 1)
	}
}
