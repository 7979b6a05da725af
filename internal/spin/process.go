package spin

import (
	"sync/atomic"
	"time"
)

// A Process is what all looks of a process share: the clock, the processors, and how many may look at once.
type Process struct {
	// Now returns the time since some moment in the past.
	Now func() time.Duration
	// YieldThread lets other threads have the processor, and Yield other goroutines.
	YieldThread, Yield func()
	// CPU tells of the processors that the process has. It is called now and then, in a goroutine of its own.
	CPU func() CPU

	looking atomic.Int32 // looks that go on
	places  atomic.Int32 // how many may
	next    atomic.Int64 // when CPU is to be called again, as of Now
	asking  atomic.Bool  // a goroutine calls CPU
	quiet   throttled    // of the goroutine that calls CPU
}

// A CPU says which processors a process has.
type CPU struct {
	// Threads is how many goroutines run at once: GOMAXPROCS, or the processors that the process may use if they are fewer.
	Threads int
	// Quota is how many processors' time the process may use, as of its cgroup; zero: there is no such bound.
	Quota float64
	// Throttled counts how often the process had to stop because of the quota.
	Throttled uint64
}

// Between two calls of CPU.
const refresh = time.Second

// enter reports whether one more may look.
func (p *Process) enter() bool {
	if now := p.Now(); int64(now) >= p.next.Load() {
		p.askSoon(now)
	}
	if p.looking.Add(1) > p.places.Load() {
		p.looking.Add(-1)
		return false
	}
	return true
}

// askSoon has one goroutine ask for the processors.
func (p *Process) askSoon(now time.Duration) {
	if next := p.next.Load(); int64(now) >= next && p.next.CompareAndSwap(next, int64(now+refresh)) &&
		p.asking.CompareAndSwap(false, true) {
		go p.ask()
	}
}

// ask sets how many may look: half of the processors. There are none if the process has less than two, and for a while
// after it was throttled: a look then takes time from work.
func (p *Process) ask() {
	defer p.asking.Store(false)
	cpu := p.CPU()
	n := cpu.Threads
	if cpu.Quota > 0 {
		n = min(n, int(cpu.Quota))
	}
	n /= 2
	if p.quiet.now(p.Now(), cpu.Throttled) {
		n = 0
	}
	p.places.Store(int32(n))
}

// A throttled is the memory of when a process was throttled last. The pauses of looks grow while that goes on.
type throttled struct {
	seen         uint64
	known        bool
	pause, until time.Duration
}

const (
	minPause = 10 * time.Second
	maxPause = 5 * time.Minute
)

// now reports whether looks pause, given how often the process was throttled so far.
func (t *throttled) now(at time.Duration, n uint64) bool {
	more := t.known && n > t.seen
	t.seen, t.known = n, true
	switch {
	case at < t.until:
	case more:
		t.pause = min(max(minPause, 2*t.pause), maxPause)
		t.until = at + t.pause
	case at > t.until+t.pause:
		t.pause = 0
	}
	return at < t.until
}
