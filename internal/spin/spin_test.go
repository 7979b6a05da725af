package spin

import (
	"testing"
	"time"
)

const limit = 100 * time.Microsecond

// A rig is a connection in virtual time: a poll takes a microsecond.
type rig struct {
	t *testing.T
	*Spinner
	p         Process
	clocks    int // how often the clock was read
	threads   int // how often other threads were let run
	now       time.Duration
	others    time.Duration // what a yield lets other goroutines have
	thread    time.Duration // what the first yield of the thread lets another thread have
	comes     time.Duration // when bytes come
	interrupt time.Duration // when the wait is interrupted
	closed    time.Duration // when there is no point in looking any more
	polls     int
	yields    int // of the goroutine
	ran       []time.Duration
}

const never = time.Hour

func newRig(t *testing.T, places int) *rig {
	r := &rig{t: t, Spinner: New(limit), now: time.Second, comes: never, interrupt: never, closed: never}
	r.p = Process{
		Now: func() time.Duration { r.clocks++; return r.now },
		YieldThread: func() {
			r.threads++
			r.now += r.thread
			r.thread = 0
		},
		Yield: func() {
			r.yields++
			r.ran = append(r.ran, r.now)
			r.now += r.others
		},
	}
	r.p.places.Store(int32(places))
	r.p.next.Store(int64(never))
	return r
}

func (r *rig) Poll() (found, over bool) {
	r.polls++
	r.now += time.Microsecond
	return r.now >= r.comes, r.now >= r.comes || r.now >= r.closed
}

func (r *rig) Interrupted() bool { return r.now >= r.interrupt }

// look has the connection look, with bytes that come after some time.
func (r *rig) look(after time.Duration) (found bool, took time.Duration) {
	began := r.now
	r.comes = began + after
	found = r.Look(&r.p, r)
	return found, r.now - began
}

// sleeps has the connection wait until it looks, each time for so long, and returns how often it slept.
func (r *rig) sleeps(each time.Duration) (n int) {
	for ; !r.Looks(); n++ {
		if n > 10_000 {
			return -1
		}
		r.Slept(each)
	}
	return n
}

// TestLooksAfterShortWait: a connection sleeps first. It looks once waits are short, and not while they are long.
func TestLooksAfterShortWait(t *testing.T) {
	r := newRig(t, 1)
	if n := r.sleeps(time.Second); n != -1 {
		t.Fatalf("it looks after %d long waits", n)
	}
	if n := r.sleeps(2 * limit); n != -1 {
		t.Fatalf("it looks after %d waits of twice its limit", n)
	}
	if n := r.sleeps(2*limit - 1); n != first {
		t.Fatalf("it looks after %d short waits, want %d", n, first)
	}
	if found, took := r.look(20 * time.Microsecond); !found || took != 20*time.Microsecond {
		t.Errorf("found %t after %v", found, took)
	}
	for range 300 { // a sleep between looks, as after an interrupt, says nothing
		r.Slept(0)
	}
	if !r.Looks() {
		t.Error("it does not look again")
	}
	if r.Spent() != 20*time.Microsecond {
		t.Errorf("spent %v", r.Spent())
	}
}

// TestLooksInVain: a look ends at its limit. Each that finds nothing has more waits sleep, up to a bound; each that
// finds something, fewer.
func TestLooksInVain(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	for _, want := range []int{3, 7, 15, 31, 63, 127, 255, 255} {
		found, took := r.look(never)
		if found || took < limit || took > limit+perClock*time.Microsecond {
			t.Errorf("found %t, took %v", found, took)
		}
		if n := r.sleeps(limit); n != want {
			t.Errorf("then %d waits sleep, want %d", n, want)
		}
	}
	for range 3 {
		r.look(0)
	}
	r.look(never)
	if n := r.sleeps(limit); n != 2*(255/8)+1 {
		t.Errorf("then %d waits sleep", n)
	}
}

// TestLookEnds: a look ends at its next poll after an interrupt, or when the connection is over, in 10 us of its own
// time. An interrupt says nothing of the next wait, which looks again.
func TestLookEnds(t *testing.T) {
	for _, at := range []time.Duration{1, 10, 33, 77, 99} {
		at *= time.Microsecond
		r := newRig(t, 1)
		r.sleeps(0)
		r.interrupt = r.now + at
		if found, took := r.look(never); found || took > at+10*time.Microsecond {
			t.Errorf("interrupted at %v: found %t after %v", at, found, took)
		}
		if !r.Looks() {
			t.Error("interrupted, and it does not look again")
		}
		r.interrupt, r.closed = never, r.now+at
		if found, took := r.look(never); found || took > at+10*time.Microsecond {
			t.Errorf("over at %v: found %t after %v", at, found, took)
		}
	}
}

// TestErrand: a look that found something after another thread had the processor for long was not worth it; a short
// errand of that thread does not matter.
func TestErrand(t *testing.T) {
	for _, c := range []struct {
		had  time.Duration
		next bool
	}{{0, true}, {errand, true}, {errand + 1, false}} {
		r := newRig(t, 1)
		r.sleeps(0)
		r.thread = c.had
		if found, _ := r.look(80 * time.Microsecond); !found || r.thread != 0 {
			t.Fatalf("found %t, after %d yields", found, r.threads)
		}
		if r.Looks() != c.next {
			t.Errorf("another thread had %v: the next wait looks: %t", c.had, !c.next)
		}
	}
}

// TestSteady: after some looks in a row that found something the next one probably will; after one that did not, not.
func TestSteady(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	for i := range 2 * steady {
		if r.Steady() != (i >= steady) {
			t.Errorf("after %d looks: steady %t", i, r.Steady())
		}
		r.look(5 * time.Microsecond)
	}
	if r.look(never); r.Steady() {
		t.Error("steady after a look in vain")
	}
}

// TestYields: other goroutines run now and then while one looks again and again, more rarely while there are none. A
// look in which they need the processor gives way.
func TestYields(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	for began := r.now; r.now < began+20*time.Millisecond; {
		r.look(8 * time.Microsecond)
	}
	for i, at := range r.ran[1:] {
		if gap := at - r.ran[i]; gap > maxYield+10*time.Microsecond {
			t.Errorf("no other goroutine may run for %v", gap)
		}
	}
	if r.yields < 20 || r.yields > 30 {
		t.Errorf("%d yields in 20 ms", r.yields)
	}
	r.others = 5 * time.Microsecond // they have something to do now
	for r.yields = 0; r.yields < 2; {
		r.look(90 * time.Microsecond)
	}
	last := len(r.ran)
	if gap := r.ran[last-1] - r.ran[last-2]; gap > 2*minYield {
		t.Errorf("others ran, and next after %v", gap)
	}
	r.others = limit * 3 / 5
	r.yields, r.Spinner.yields.at = 0, 0
	if found, took := r.look(never); found || r.yields != 1 || took >= limit {
		t.Errorf("it does not give way: found %t after %v and %d yields", found, took, r.yields)
	}
}

// TestYieldsTogether: a look gives way to goroutines that need the processor for short times that are long together. The
// time until the next yield begins when they are done.
func TestYieldsTogether(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	r.others = limit * 3 / 10
	if found, _ := r.look(limit * 6 / 5); found || r.yields != 2 {
		t.Fatalf("it does not give way: found %t after %d yields", found, r.yields)
	}
	if gap := r.ran[1] - r.ran[0]; gap < r.others+minYield {
		t.Errorf("the next yield is %v after one that took %v", gap, r.others)
	}
}

// TestThreads: a look lets other threads run, but not at first, and it reads the clock more rarely than it polls.
func TestThreads(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	if r.look((alone - 1) * time.Microsecond); r.threads != 0 {
		t.Errorf("%d times other threads, in a short look", r.threads)
	}
	if r.look((alone + 1) * time.Microsecond); r.threads != 1 {
		t.Errorf("%d times other threads, in a look that is just longer", r.threads)
	}
	r.threads = 0
	r.clocks, r.polls = 0, 0
	r.look(never)
	if r.threads < 10 || r.threads > r.polls/perClock {
		t.Errorf("%d times other threads, in a long look of %d polls", r.threads, r.polls)
	}
	if r.clocks > 3*r.polls/perClock+10 {
		t.Errorf("the clock was read %d times in %d polls", r.clocks, r.polls)
	}
}

// TestPlaces: no more than there are places look at once. One that finds none sleeps.
func TestPlaces(t *testing.T) {
	r := newRig(t, 0)
	r.sleeps(0)
	if found, took := r.look(0); found || took != 0 {
		t.Errorf("no place: found %t after %v", found, took)
	}
	if n := r.sleeps(0); n != 3 {
		t.Errorf("no place, and then %d waits sleep", n)
	}
	r.p.places.Store(1)
	r.sleeps(0)
	if found, _ := r.look(0); !found {
		t.Error("one place, and it did not look")
	}
	if n := r.p.looking.Load(); n != 0 {
		t.Errorf("%d places are not given back", n)
	}
}

// TestOff: with no limit nothing looks, and no wait is timed.
func TestOff(t *testing.T) {
	for _, d := range []time.Duration{0, -1} {
		if s := New(d); s.Looks() || s.Counts() || s.Spent() != 0 {
			t.Errorf("limit %v: looks %t, counts %t, spent %v", d, s.Looks(), s.Counts(), s.Spent())
		}
	}
}

// TestClockStandsStill: such a clock ends a look all the same.
func TestClockStandsStill(t *testing.T) {
	r := newRig(t, 1)
	r.sleeps(0)
	r.p.Now = func() time.Duration { return time.Second }
	r.comes = never
	if r.Look(&r.p, r) {
		t.Error("found")
	}
	if r.polls > int(limit/perPoll) {
		t.Errorf("%d polls", r.polls)
	}
}
