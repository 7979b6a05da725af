package tcp

import (
	"math"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestBellTells has a bell's timer ring it, and then bytes, and closes it: the descriptor of the timer is closed too.
func TestBellTells(t *testing.T) {
	a, b := pair(t)
	bell := a.raw.newBell()
	if bell == nil {
		t.Fatal("there is none")
	}
	if !bell.ringAfter(time.Millisecond) || !bell.wait() {
		t.Error("the timer has not rung it")
	}
	if !bell.arm(true) {
		t.Error("it cannot be armed")
	}
	sendAll(t, b, []byte("x"))
	if bell.wait() {
		t.Error("bytes are said to be the timer")
	}
	timer := bell.timer
	bell.close()
	if err := unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{}, nil); err == nil || bell.timer >= 0 {
		t.Error("the timer is open")
	}
	if bell.wait() {
		t.Error("a bell that is closed is said to have a timer")
	}
}

// TestNoBellOfClosed wants a bell for a socket that is closed.
func TestNoBellOfClosed(t *testing.T) {
	a, _ := pair(t)
	testrig.Must(t, a.Close())
	if a.raw.newBell() != nil {
		t.Error("there is one")
	}
}

// TestNoTimer has consumers come so often that the bell's timer is to keep watch, where the system has none to give:
// the bell keeps watch itself.
func TestNoTimer(t *testing.T) {
	s := standBack(t)
	s.acquire()
	s.c.role.mu.Lock()
	s.c.role.bell.timer = 1 << 30 // which is no descriptor
	s.c.role.mu.Unlock()
	for range 2 * steady {
		s.c.ReleaseRole(false, false)
		s.acquire()
	}
	s.c.ReleaseRole(false, false)
	s.write("x")
	s.wantBack(2*steady + 1)
}

// TestTimerRings has the bell's timer ring while a consumer has the role: the consumer sets it anew as it leaves. Where
// it rings again and again, the bell is armed instead, until many more have come; and the timer is trusted again when
// they come quickly.
func TestTimerRings(t *testing.T) {
	c, _ := pair(t)
	r := &c.role
	if !c.hasBell() {
		t.Fatal("there is no bell")
	}
	leaves := func(leads int32, wantArmed bool) {
		t.Helper()
		r.state, r.leads = taken, leads
		r.arm(false)
		c.ReleaseRole(false, false)
		if r.timed == wantArmed || r.armed != wantArmed {
			t.Errorf("lead %d: the timer runs: %t, the bell is armed: %t", leads, r.timed, r.armed)
		}
	}
	rings := func() {
		t.Helper()
		r.state = taken
		if c.timeout(); r.timed || r.armed {
			t.Errorf("the timer has rung; it runs: %t, the bell is armed: %t", r.timed, r.armed)
		}
	}
	r.lazyFrom = steady
	leaves(steady+1, false)
	rings()
	leaves(steady+2, false)
	rings()
	leaves(steady+3, true)
	leaves(2*steady+2, true)
	leaves(2*steady+3, false)
	rings()
	leaves(4*steady+3, true)
	leaves(4*steady+4, false)
	leaves(4*steady+4+postpone, false)
	rings()
	leaves(4*steady+5+postpone, false)
	r.state = free
	if c.timeout(); r.timed || !r.armed {
		t.Error("nobody has the role, and nobody keeps watch")
	}
}

// TestTimerRingsOften has the timer ring for nearly each consumer: it is tried more and more rarely, to a bound.
func TestTimerRingsOften(t *testing.T) {
	c, _ := pair(t)
	r := &c.role
	for range 300 {
		c.timeout()
	}
	if got, want := r.lazyFrom-r.leads, int32(steady<<(slowest-slow)); got != want {
		t.Errorf("it is tried again after %d leads, want %d", got, want)
	}
}

// TestTimerOfMany has a consumer come once more than leads can count: the timer keeps watch as before.
func TestTimerOfMany(t *testing.T) {
	c, _ := pair(t)
	r := &c.role
	if !c.hasBell() {
		t.Fatal("there is no bell")
	}
	r.state, r.leads, r.before, r.lazyFrom = free, math.MaxInt32-1, math.MaxInt32-1, steady
	for i := range 3 {
		if !c.AcquireRole() {
			t.Fatal("the role is not free")
		}
		c.ReleaseRole(false, false)
		if r.leads <= steady || !r.timed || r.armed {
			t.Errorf("%d: lead %d, the timer runs: %t, the bell is armed: %t", i, r.leads, r.timed, r.armed)
		}
	}
}

// TestTimerPostponed has a timer that runs, and consumers that come and go: after some of them it begins anew, and not
// before.
func TestTimerPostponed(t *testing.T) {
	c, _ := pair(t)
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.hasBell() || !r.bell.ringAfter(time.Hour) {
		t.Fatal("there is no bell")
	}
	left := func() time.Duration {
		var in unix.ItimerSpec
		testrig.Must(t, unix.TimerfdGettime(r.bell.timer, &in))
		return time.Duration(unix.TimespecToNsec(in.Value))
	}
	r.state, r.timed, r.before, r.leads = free, true, steady, steady+postpone-1
	if c.guardSoon(); r.before != steady || left() <= lazy {
		t.Errorf("after %d leads it began anew, and rings in %v", postpone-1, left())
	}
	r.leads++
	if c.guardSoon(); !r.timed || r.armed || r.before != r.leads || left() > lazy {
		t.Errorf("after %d leads it rings in %v, the bell is armed: %t", postpone, left(), r.armed)
	}
}

// TestBellMadeOnce has the receiving goroutine stand back twice, and takes the role back: there is one bell, its timer
// is made when it is needed, and does not run on.
func TestBellMadeOnce(t *testing.T) {
	c, _ := pair(t)
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.hasBell() {
		t.Fatal("there is no bell")
	}
	if bell := r.bell; !c.hasBell() || r.bell != bell {
		t.Error("there is another bell")
	}
	if r.takeBack(); r.timed || r.bell.timer >= 0 {
		t.Error("there is a timer that nobody needs")
	}
	r.timed = r.bell.ringAfter(time.Hour)
	if r.takeBack(); r.timed {
		t.Error("the timer runs on")
	}
}

// TestLimits asks what TCP sends: segments of some bytes, and pieces of whole segments.
func TestLimits(t *testing.T) {
	a, _ := pair(t)
	if emss, piece := a.Limits(); emss <= 0 || emss > 1<<16 || piece < emss || piece%emss != 0 {
		t.Errorf("segments of %d bytes, pieces of %d", emss, piece)
	}
	testrig.Must(t, a.Close())
	if emss, piece := a.Limits(); emss != 0 || piece != 0 {
		t.Errorf("closed: segments of %d bytes, pieces of %d", emss, piece)
	}
}

// TestNoPathYet asks a socket that has sent nothing yet, so that there was no round trip.
func TestNoPathYet(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	rc, err := ln.(syscall.Conn).SyscallConn()
	testrig.Must(t, err)
	r := &rawConn{rc: rc}
	r.limitsFn = r.askLimits
	if p, ok := r.path(); ok {
		t.Errorf("it is said to be %+v", p)
	}
}
