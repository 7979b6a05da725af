package driver

import "context"

// A consumer that waits on a quiet connection receives for itself: a message then wakes the goroutine that wants it,
// and no other. Package tcp has the rules of who reads (tcp.Conn's YieldRole and AcquireRole).
//
// The receiving goroutine stands back when a message has come for which somebody waited, and nothing after it. Wait
// of a CQ with a single QP, and the one-call forms, then take the role. The consumer carries out what arrives as the
// receiving goroutine would: placement, Read Responses, completions for others, a Terminate. It stops when there is
// what it waits for:
//
//   - its completion, or the end of its CQ: by what it received itself, or by a poster, a sender, a timer, Close or
//     Abort. Those interrupt it: see Consumer;
//   - the end of its context, which interrupts it;
//   - a Machine that takes in nothing more for now: the receiving goroutine waits for room;
//   - the end of the connection, which it finds as it reads.
//
// Timers and closes run in goroutines of their own and need nobody to read. A consumer that leaves and does not come
// back keeps nothing waiting for long: what arrives next wakes the receiving goroutine, at once if anybody else waits
// or the peer ends, and after a few milliseconds at most if nobody does. That goes on until it is quiet again.
type role struct { // guarded by Conn.mu
	offer bool // someone has waited for a completion that came with the last bytes
	quiet bool // the Machine took all of those
	// How many such offers pass by before the receiving goroutine stands back, and how many they were the last time:
	// they grow while consumers do not come, or get interrupted.
	backOff, lastBackOff int32
}

const (
	minBackOff  = 8
	maxBackOff  = 1024
	steadyLeads = 16 // in a row: consumers keep coming
)

// A Consumer waits for something that a connection brings.
type Consumer interface {
	// Sleep reports whether there is nothing yet. Then it calls c.Announce, and c.Interrupt as soon as there is
	// something.
	Sleep(c *Conn) bool
	// Awake says that nobody waits in this way any more.
	Awake()
}

// Announce says that a Consumer is going to read: an Interrupt from now on ends that.
func (c *Conn) Announce() { c.tcp.Announce() }

// Interrupt wakes the Consumer that receives.
func (c *Conn) Interrupt() { c.tcp.Interrupt() }

// ReceiveFor receives for a Consumer as long as that has to wait, if nobody else does. When it returns there may still
// be reason to wait.
func (c *Conn) ReceiveFor(ctx context.Context, s Consumer) {
	if c.tcp != nil && c.tcp.AcquireRole() {
		receiver{c, c.tcp}.lead(ctx, s)
	}
}

// lead receives for a Consumer that has taken the role.
func (r receiver) lead(ctx context.Context, s Consumer) {
	r.tcp.InterruptWith(ctx)
	interrupted, more := false, true
	for more && !r.isHeldBack() && s.Sleep(r.Conn) && ctx.Err() == nil {
		var err error
		if interrupted, err = r.tcp.RecvTaken(); !interrupted {
			more = r.takeIn(err)
		}
	}
	s.Awake() // before the next has the role
	if more {
		r.tcp.ReleaseRole(interrupted && ctx.Err() == nil, r.cfg.Owner.Awaited())
	}
}

// RearmReads has what arrives wake the receiving goroutine at once. Who begins to wait and does not receive for itself
// calls it.
func (c *Conn) RearmReads() {
	if c.tcp != nil {
		c.tcp.RearmReads()
	}
}

// yieldsRole reports whether a consumer has just got what it waited for, and whether the receiving goroutine is
// therefore to let consumers receive for themselves: nothing came after it.
func (r receiver) yieldsRole() (woke, back bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.role
	if !l.offer || !l.quiet || !r.listening() || r.machine.HoldsBack() { // the receiving goroutine waits for room
		return l.offer, false
	}
	if l.backOff > 0 {
		l.backOff--
		return true, false
	}
	return true, r.tcp.CanYieldRole()
}

// yieldedRole takes note of how often consumers have received in place of the receiving goroutine.
func (r receiver) yieldedRole(leads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.role
	if leads >= steadyLeads {
		l.lastBackOff = 0
	}
	l.lastBackOff = min(max(minBackOff, 2*l.lastBackOff), maxBackOff)
	l.backOff = l.lastBackOff
}

// Poll sends what is queued, and takes in what has come, if no other goroutine is doing so: a consumer that polls
// drives its own connection, which spares it the way through another goroutine. It reports whether it did anything.
func (c *Conn) Poll() bool {
	did, mayReceive := c.flush()
	if mayReceive && (receiver{c, c.tcp}).poll() {
		return true
	}
	return did
}

// poll takes in what has come.
func (r receiver) poll() bool {
	ok, err := r.tcp.TryRecv()
	if ok {
		r.received(err)
		r.tcp.Done()
	}
	if r.tcp.SuppressDue() {
		r.suppressWakeUps()
	}
	return ok
}

// suppressWakeUps has what arrives wake nobody while a consumer polls, if nobody else waits. Who begins to wait
// meanwhile looks out before this does, or is seen here.
func (r receiver) suppressWakeUps() {
	if r.cfg.Owner.Awaited() {
		return
	}
	r.tcp.SuppressWakeUps()
	if r.cfg.Owner.Awaited() {
		r.tcp.RearmReads()
	}
}
