// Package spin decides for each connection whether a wait looks at the socket for a while before it sleeps. To sleep
// and to be woken costs tens of microseconds of time and of CPU; a look costs less if the bytes come soon.
//
// A Spinner and a Process read no clock and call no system: a Process has functions for that. ReadCPU is one of them.
package spin

import (
	"sync/atomic"
	"time"
)

// A Spinner decides for the waits of one connection. Whoever receives on the connection calls it, one goroutine at a
// time.
//
// It begins with SLEEPS, for first short waits. A short wait is shorter than twice the limit.
//
//	        found: skip is halved; interrupted: as before
//	        +--+
//	        |  v
//	+----> LOOKS --- nothing found, gave way, or another thread ran for longer
//	|        |       than an errand: skip = 2*skip + 1, at most maxSkip
//	|        v
//	+----- SLEEPS    for skip short waits
//
// A wait that LOOKS and finds nothing sleeps too. Long waits do not count: a connection that is idle, or whose messages
// are further apart than that, looks once after each busy time and then sleeps.
type Spinner struct {
	limit  time.Duration // of one look
	left   int           // short waits that still sleep; zero: LOOKS
	skip   int           // how many these were the last time
	streak int           // looks that found something, without one between that did not
	yields yields
	spent  atomic.Int64 // nanoseconds of all looks
}

const (
	first   = 4 // short waits before the first look
	maxSkip = 255
	short   = 2 // times the limit: a wait that is worth a look
	steady  = 8 // looks in a row: see Steady
)

// New returns a Spinner with looks of so long at most; nil, which never looks, if there are none. Its first look comes
// after some short waits: a connection that carries a message each way and ends never looks.
func New(limit time.Duration) *Spinner {
	if limit <= 0 {
		return nil
	}
	return &Spinner{limit: limit, left: first, skip: 1}
}

// Looks reports whether the next wait looks.
func (s *Spinner) Looks() bool { return s != nil && s.left == 0 }

// Counts reports whether it matters how long the next wait sleeps: tell Slept.
func (s *Spinner) Counts() bool { return s != nil && s.left > 0 }

// Slept says how long a wait has slept.
func (s *Spinner) Slept(d time.Duration) {
	if s.left > 0 && d < short*s.limit {
		s.left--
	}
}

// Steady reports whether so many looks in a row have found something that more of them will.
func (s *Spinner) Steady() bool { return s.streak >= steady }

// Spent returns how long all looks have taken. Any goroutine may call it.
func (s *Spinner) Spent() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.spent.Load())
}

// A Socket is what a Spinner looks at.
type Socket interface {
	// Poll looks once, and takes what is there. Over tells that it makes no sense to look again: something was found,
	// somebody else reads, the connection has ended.
	Poll() (found, over bool)
	// Interrupted tells that the wait is to end, whatever comes.
	Interrupted() bool
}

// Look looks until something is found, or the look is over. It reports whether something was found. One that is
// interrupted says nothing of the next. One that found something after another thread had the processor was not worth
// it: that thread may be the other end, and would have had the processor at once if this one had slept. Short errands of
// other threads do not count: while a long message comes there are several, and the next look is worth it all the same.
func (s *Spinner) Look(p *Process, on Socket) bool {
	if !p.enter() {
		s.judge(false)
		return false
	}
	l := look{s: s, p: p, began: p.Now(), limit: s.limit}
	found := l.run(on)
	p.looking.Add(-1)
	s.spent.Add(int64(l.now - l.began))
	if !l.interrupted {
		s.judge(found && !l.shared)
	}
	return found
}

// judge draws the conclusion from a look.
func (s *Spinner) judge(worth bool) {
	if worth {
		s.skip /= 2
		s.streak++
		return
	}
	s.skip = min(2*s.skip+1, maxSkip)
	s.left, s.streak = s.skip, 0
}

// A look is one look that goes on.
type look struct {
	s           *Spinner
	p           *Process
	began, now  time.Duration
	limit       time.Duration
	others      time.Duration // what other goroutines had of it
	interrupted bool
	shared      bool // another thread has had this processor for longer than an errand
}

const (
	// A look reads the clock, and lets other threads run, after so many polls. While it is alone it does not yield: bytes
	// that come soon come from another processor.
	perClock = 4
	alone    = 32
	// perPoll is what a poll takes at least. It bounds a look whose clock stands still.
	perPoll = 25 * time.Nanosecond
	// errand is how long another thread may have the processor. Of 3, 7, 12, 16 and 24 us this one keeps 64 KiB fast
	// (half a round trip takes 0.5 of sleeping TCP's, with 3 us 1.2), and does no harm on a busy machine.
	errand = 24 * time.Microsecond
	// maxOthers is the part of the limit that other goroutines may have before the look gives way.
	maxOthers = 2
)

func (l *look) run(on Socket) (found bool) {
	defer func() { l.now = l.p.Now() }()
	for i := 1; i < int(l.limit/perPoll); i++ {
		if found, over := on.Poll(); found || over {
			return found
		}
		if l.interrupted = on.Interrupted(); l.interrupted {
			return false
		}
		if i%perClock > 0 {
			continue
		}
		if i >= alone {
			l.yieldThread()
		}
		if l.now = l.p.Now(); l.now-l.began > l.limit || l.now >= l.s.yields.at && l.yield() {
			return false
		}
	}
	return false
}

// yieldThread lets other threads have the processor. It notes whether one had it for longer than an errand.
func (l *look) yieldThread() {
	before := l.p.Now()
	l.p.YieldThread()
	l.shared = l.shared || l.p.Now()-before > errand
}

// yield lets other goroutines run. It reports whether these need the processor so much that the look gives way.
func (l *look) yield() (givesWay bool) {
	l.p.Yield()
	took := l.p.Now() - l.now
	l.now += took
	l.others += took
	l.s.yields.next(l.now, took)
	return l.others > l.limit/maxOthers
}

// yields is when a goroutine that looks lets others run: more rarely while there are none. The runtime wakes a thread for
// them each time, if a processor is idle.
type yields struct{ at, every time.Duration }

const (
	minYield = 50 * time.Microsecond
	maxYield = time.Millisecond
	nobody   = 3 * time.Microsecond // a yield that takes no longer has let nobody run
)

// next sets the time of the next yield, after one that took so long.
func (y *yields) next(now, took time.Duration) {
	y.every = min(max(minYield, 2*y.every), maxYield)
	if took > nobody {
		y.every = minYield
	}
	y.at = now + y.every
}
