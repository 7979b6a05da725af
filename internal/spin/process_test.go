package spin

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlacesOfProcess: half of the processors may look. Below two there are no looks, and none for a while after the
// process was throttled.
func TestPlacesOfProcess(t *testing.T) {
	for _, c := range []struct {
		cpu  CPU
		want int32
	}{
		{CPU{Threads: 1}, 0},
		{CPU{Threads: 2}, 1},
		{CPU{Threads: 3}, 1},
		{CPU{Threads: 16}, 8},
		{CPU{Threads: 2, Quota: 0.5}, 0},
		{CPU{Threads: 2, Quota: 1.9}, 0},
		{CPU{Threads: 16, Quota: 2}, 1},
		{CPU{Threads: 4, Quota: 64}, 2},
	} {
		p := Process{Now: func() time.Duration { return 0 }, CPU: func() CPU { return c.cpu }}
		if p.ask(); p.places.Load() != c.want {
			t.Errorf("%+v: %d places, want %d", c.cpu, p.places.Load(), c.want)
		}
	}
}

// TestNoPlacesAfterThrottled: a process that was throttled since has no places for a while.
func TestNoPlacesAfterThrottled(t *testing.T) {
	now, cpu := time.Duration(0), CPU{Threads: 4, Quota: 4, Throttled: 7}
	p := Process{Now: func() time.Duration { return now }, CPU: func() CPU { return cpu }}
	for _, step := range []struct {
		at        time.Duration
		throttled uint64
		want      int32
	}{{0, 7, 2}, {time.Second, 7, 2}, {2 * time.Second, 8, 0}, {11 * time.Second, 8, 0}, {13 * time.Second, 8, 2}} {
		now, cpu.Throttled = step.at, step.throttled
		if p.ask(); p.places.Load() != step.want {
			t.Errorf("at %v, throttled %d times: %d places", step.at, step.throttled, p.places.Load())
		}
	}
}

// TestAsksAlone: while a goroutine asks, no other does, however long it takes.
func TestAsksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked atomic.Int32
		p := Process{
			Now: func() time.Duration { return time.Since(began) },
			CPU: func() CPU { asked.Add(1); time.Sleep(10 * time.Second); return CPU{Threads: 2} },
		}
		for range 9 {
			p.enter()
			time.Sleep(time.Second)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d ask at once", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

// TestAsksNowAndThen: the first look asks for the processors, and others again when that is a second ago.
func TestAsksNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		p := Process{
			Now: func() time.Duration { return time.Since(began) },
			CPU: func() CPU { asked++; return CPU{Threads: 2} },
		}
		for range 300 {
			if p.enter() {
				p.looking.Add(-1)
			}
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		if asked != 3 {
			t.Errorf("asked %d times in 3 s", asked)
		}
		if !p.enter() || p.enter() {
			t.Error("of two processors not one may look")
		}
	})
}

// TestThrottled: looks pause after the process was throttled, longer each time it happens again soon.
func TestThrottled(t *testing.T) {
	var q throttled
	if q.now(0, 1000) {
		t.Error("throttled before the first look counts")
	}
	if !q.now(time.Second, 1001) {
		t.Fatal("throttled, and no pause")
	}
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		want *= time.Second
		if q.pause != want {
			t.Fatalf("a pause of %v, want %v", q.pause, want)
		}
		if !q.now(q.until-1, q.seen+5) {
			t.Errorf("the pause of %v ends before", want)
		}
		if q.now(q.until, q.seen) {
			t.Errorf("the pause of %v does not end", want)
		}
		q.now(q.until+time.Second/2, q.seen) // which does not make it forget
		q.now(q.until+time.Second, q.seen+1)
	}
	q.now(q.until+q.pause+1, q.seen) // not throttled for as long as it paused
	if q.now(q.until+q.pause+2*time.Second, q.seen+1); q.pause != minPause {
		t.Errorf("then a pause of %v", q.pause)
	}
}
