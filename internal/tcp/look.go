package tcp

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/spin"
)

// SetSpin bounds how long a wait looks at the socket before it sleeps; zero or less: it sleeps at once. It is called
// before the first wait. Connections whose two ends are in this process never look: that would keep the other end from
// the processor.
func (c *Conn) SetSpin(limit time.Duration) {
	if c.withinProcess() || c.raw == nil {
		limit = 0
	}
	c.spin = spin.New(limit)
}

// Spun returns how long all looks have taken.
func (c *Conn) Spun() time.Duration { return c.spin.Spent() }

// RecvSoon is Recv that looks first. Whoever has the role of the receiver calls it.
func (c *Conn) RecvSoon() error {
	if c.looks() {
		if found := c.spin.Look(process, (*looker)(c)); found {
			c.suppressBetweenLooks()
			return c.raw.outcome()
		}
	}
	c.allowBeforeSleep()
	if !c.spin.Counts() || c.inside.Load() {
		return c.Recv()
	}
	began := process.Now()
	err := c.Recv()
	c.spin.Slept(process.Now() - began)
	return err
}

func (c *Conn) looks() bool {
	return c.spin.Looks() && !c.inside.Load() && !c.isAhead.Load()
}

// A looker is a Conn whose receiver looks: a spin.Socket.
type looker Conn

// Poll reads what is there. If something is found, the receive buffer is the caller's.
func (l *looker) Poll() (found, over bool) {
	if !l.rx.mu.TryLock() {
		return false, true
	}
	l.rx.polls++
	if found, over = l.raw.look(); !found {
		l.rx.mu.Unlock()
	}
	return found, over
}

// Interrupted tells that a consumer that receives has something else to do.
func (l *looker) Interrupted() bool { return l.poked.Load() }

// suppressBetweenLooks has what arrives wake nobody while looks find it. That ends before whoever has the role sleeps,
// and when a consumer has left and the bell is armed.
func (c *Conn) suppressBetweenLooks() {
	if c.quiet || !c.spin.Steady() {
		return
	}
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.suppressed && r.state != over {
		c.suppress()
		c.quiet = r.suppressed
	}
}

// allowBeforeSleep has what arrives wake who is going to sleep. Who polls meanwhile may still suppress that.
func (c *Conn) allowBeforeSleep() {
	if c.quiet {
		c.quiet = false
		c.role.mu.Lock()
		defer c.role.mu.Unlock()
		c.allowWakeUps()
	}
}

// process is this process: all its connections share its processors.
var process = newProcess()

func newProcess() *spin.Process {
	born := time.Now()
	return &spin.Process{
		Now:         func() time.Duration { return time.Since(born) },
		YieldThread: yieldThread, Yield: runtime.Gosched, CPU: spin.ReadCPU,
	}
}

// locals has the connections of this process whose other end has not been met in it, and which may have one: both
// addresses are of this machine.
var locals = struct {
	mu    sync.Mutex
	conns map[[2]netip.AddrPort]*Conn
}{conns: make(map[[2]netip.AddrPort]*Conn)}

// withinProcess reports whether the other end is in this process, as far as it has been met. If it comes later it tells
// this one.
func (c *Conn) withinProcess() bool {
	here, there, ok := c.ends()
	if !ok {
		return false
	}
	locals.mu.Lock()
	defer locals.mu.Unlock()
	if p := locals.conns[[2]netip.AddrPort{there, here}]; p != nil {
		p.inside.Store(true)
		delete(locals.conns, [2]netip.AddrPort{there, here})
		return true
	}
	locals.conns[[2]netip.AddrPort{here, there}] = c
	return false
}

// ends returns the addresses of a connection whose other end may be in this process.
func (c *Conn) ends() (here, there netip.AddrPort, ok bool) {
	if c.raw == nil { // its methods may be the program's
		return here, there, false
	}
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 || !local.IP.Equal(remote.IP) {
		return here, there, false
	}
	return plain(local), plain(remote), true
}

// plain returns an address in one form: a socket for both families has those of IPv4 as IPv6.
func plain(a *net.TCPAddr) netip.AddrPort {
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// forget has the other end not look for this one any more.
func (c *Conn) forget() {
	here, there, ok := c.ends()
	if !ok {
		return
	}
	locals.mu.Lock()
	defer locals.mu.Unlock()
	if at := [2]netip.AddrPort{here, there}; locals.conns[at] == c {
		delete(locals.conns, at)
	}
}
