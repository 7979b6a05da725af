package perf

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestUsage measures a loop that computes for a while, and then sleeps.
func TestUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what the system tells is not the same everywhere")
	}
	m := startMeter(nil)
	for start := time.Now(); m.usage().CPU < 5*time.Millisecond && time.Since(start) < time.Minute; {
		os.Getppid()
	}
	time.Sleep(time.Millisecond)
	u := m.usage()
	if u.CPU < 5*time.Millisecond || u.Switches < 1 || u.Calls != 0 {
		t.Errorf("%+v, want 5 ms of CPU time and a switch, and no calls counted", u)
	}
}

// TestCallCounter counts at least the calls that it makes itself.
func TestCallCounter(t *testing.T) {
	c := newCallCounter()
	if c == nil {
		t.Skip("this system does not let this process count system calls")
	}
	defer c.close()
	m := startMeter(c)
	for range 100 {
		os.Getppid()
	}
	if u := m.usage(); u.Calls < 100 || u.Calls > 100000 {
		t.Errorf("%d system calls, want 100 and those of the runtime", u.Calls)
	}
}

func TestUsagesAddUp(t *testing.T) {
	a := usage{CPU: 5, Switches: 2, Calls: 7, Wait: 3, Steal: 1}
	b := usage{CPU: 1, Switches: 1, Calls: 2, Wait: 9, Steal: 1}
	if got, want := a.plus(b), (usage{CPU: 6, Switches: 3, Calls: 9, Wait: 12, Steal: 1}); got != want {
		t.Errorf("sum %+v, want %+v", got, want)
	}
	if got, want := a.minus(b), (usage{CPU: 4, Switches: 1, Calls: 5}); got != want {
		t.Errorf("difference %+v, want %+v: threads that have ended take their waits with them", got, want)
	}
	if got := a.plus(usage{CPU: 1}); got.Calls != 0 {
		t.Errorf("%d calls, of which one process knows nothing", got.Calls)
	}
}
