package deadline_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
)

// A machine notes when its deadlines are over.
type machine struct {
	lock  chan struct{} // which holds one while it is free: unlike at a Mutex, virtual time goes on for who waits
	begun time.Time
	timer deadline.Timer[machine]
	rung  []time.Duration // since it began
	stale int             // calls without a deadline
}

func newMachine() *machine {
	m := &machine{lock: make(chan struct{}, 1), begun: time.Now()}
	m.lock <- struct{}{}
	return m
}

// locked calls f under the lock.
func (m *machine) locked(f func()) {
	<-m.lock
	f()
	m.lock <- struct{}{}
}

// want sets the deadline in seconds since the machine began; a negative one is none.
func (m *machine) want(seconds int) { m.locked(func() { m.set(seconds) }) }

func (m *machine) set(seconds int) {
	at := m.begun.Add(time.Duration(seconds) * time.Second)
	if seconds < 0 {
		at = time.Time{}
	}
	m.timer.Set(at, m, (*machine).ring)
}

func (m *machine) ring() {
	m.locked(func() {
		if !m.timer.Take() {
			m.stale++
			return
		}
		m.rung = append(m.rung, time.Since(m.begun))
	})
}

// within runs f with a machine in virtual time, and looks at when its deadlines were over.
func within(t *testing.T, f func(m *machine), want ...time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		f(m)
		time.Sleep(time.Hour) // of virtual time
		synctest.Wait()
		if !slices.Equal(m.rung, want) || m.stale != 0 {
			t.Errorf("deadlines over after %v, want %v; %d calls without one", m.rung, want, m.stale)
		}
	})
}

// TestMoved moves a deadline back and forth, takes it back, and sets it again: each is over once, when it was wanted
// last.
func TestMoved(t *testing.T) {
	within(t, func(m *machine) { m.want(5) }, 5*time.Second)
	within(t, func(m *machine) { m.want(5); m.want(9) }, 9*time.Second)
	within(t, func(m *machine) { m.want(9); m.want(5); m.want(5) }, 5*time.Second)
	within(t, func(m *machine) { m.want(-1) })
	within(t, func(m *machine) { m.want(5); m.want(-1) })
	within(t, func(m *machine) { m.want(5); m.want(-1); m.want(7) }, 7*time.Second)
}

// TestAgain sets deadlines after others are over: a later one, one that is past, and the very same one.
func TestAgain(t *testing.T) {
	within(t, func(m *machine) {
		for _, seconds := range []int{2, 4, 1, 4, 4} {
			m.want(seconds)
			time.Sleep(3 * time.Second) // of virtual time
		}
	}, 2*time.Second, 4*time.Second, 6*time.Second, 9*time.Second, 12*time.Second)
}

// TestTooLate has the deadline taken back while the call that it has brought about waits for the lock.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.want(1)
		m.locked(func() {
			time.Sleep(2 * time.Second) // of virtual time, after which the call waits
			m.set(-1)
		})
		synctest.Wait()
		if m.stale != 1 || len(m.rung) != 0 {
			t.Errorf("%d calls without a deadline, over %v; want one call, and none over", m.stale, m.rung)
		}
	})
}

// TestMoveAllocates: a deadline that has its timer moves without garbage, as it does with every segment.
func TestMoveAllocates(t *testing.T) {
	m := new(machine)
	now := time.Now()
	m.timer.Set(now.Add(time.Hour), m, (*machine).ring)
	n := 0
	if got := testing.AllocsPerRun(100, func() {
		n++
		m.timer.Set(now.Add(time.Hour+time.Duration(n)), m, (*machine).ring)
	}); got != 0 {
		t.Errorf("%v allocations for a move", got)
	}
	m.timer.Set(time.Time{}, m, (*machine).ring)
}
