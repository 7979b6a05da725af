package driver

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestPolledFor: a closer polls for up to 200 µs, and not if there is nothing to wait for.
func TestPolledFor(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		at   time.Time
		want bool
	}{
		{time.Time{}, false}, {now.Add(-time.Hour), true}, {now, true},
		{now.Add(pollTime), true}, {now.Add(pollTime + 1), false},
	} {
		if got := polledFor(c.at, now); got != c.want {
			t.Errorf("%v from now: %t", c.at.Sub(now), got)
		}
	}
}

// TestPollFIN has a FIN held back while the timer that would send it is late: who polls sends it when its time has
// come, and not before.
func TestPollFIN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		s := newSetup(mpa.RoleInitiator).peerToPeer()
		s.params.RTT = pollTime
		e := s.on(t, a)
		newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
		synctest.Wait() // the RTR indication has gone
		e.BeginClose()
		if e.PollFIN(); e.finHeldBack().IsZero() { // while the time stands still
			t.Error("the FIN is sent before its time")
		}
		e.Conn.mu.Lock()
		e.timer.Set(time.Now().Add(time.Hour), e.Conn, (*Conn).onTimer)
		e.Conn.mu.Unlock()
		time.Sleep(pollTime) // of virtual time
		if e.PollFIN(); !e.finHeldBack().IsZero() {
			t.Error("the FIN is still held back")
		}
		e.Abort(nil)
	})
}

// closing returns an end that holds its FIN back, and that somebody is about to poll for.
func closing(t *testing.T, trip time.Duration) *end {
	t.Helper()
	a, b := testrig.Pipe("ini", "res")
	s := newSetup(mpa.RoleInitiator).peerToPeer()
	s.params.RTT = trip
	e := s.on(t, a)
	newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
	synctest.Wait() // the RTR indication has gone
	e.BeginPolledClose()
	return e
}

// TestPolledClose: who is about to poll for the FIN needs no timer, and sends it.
func TestPolledClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := closing(t, pollTime)
		time.Sleep(10 * pollTime) // of virtual time
		if e.finHeldBack().IsZero() {
			t.Error("a timer has sent the FIN that somebody is about to poll for")
		}
		if e.PollFIN(); !e.finHeldBack().IsZero() {
			t.Error("the FIN is still held back")
		}
		e.Abort(nil)
	})
}

// TestPollFINGivesUp: where the wait for the FIN is long, or the time stands still, the timer takes over.
func TestPollFINGivesUp(t *testing.T) {
	for _, trip := range []time.Duration{pollTime, 10 * pollTime} {
		synctest.Test(t, func(t *testing.T) {
			e := closing(t, trip)
			if e.PollFIN(); e.finHeldBack().IsZero() {
				t.Errorf("%v: the FIN is sent before its time", trip)
			}
			time.Sleep(trip) // of virtual time
			synctest.Wait()
			if !e.finHeldBack().IsZero() {
				t.Errorf("%v: nothing sends the FIN", trip)
			}
			e.Abort(nil)
		})
	}
}

// A pathTeller is a connection that knows how long its path is.
type pathTeller struct {
	net.Conn
	trip time.Duration
}

func (c *pathTeller) RoundTrip() time.Duration { return c.trip }

// TestTripTold: a round trip that the connection tells counts, and not the startup, for which the peer may have taken
// its time, if that is longer.
func TestTripTold(t *testing.T) {
	const ms = time.Millisecond
	for told, want := range map[time.Duration]time.Duration{3 * ms: 3 * ms, 0: 700 * ms, time.Hour: 700 * ms} {
		trip := func(startup, answer time.Duration) time.Duration {
			a, b := testrig.Pipe("ini", "res")
			defer b.Close()
			s := newSetup(mpa.RoleInitiator)
			s.params.RTT = startup
			e := s.on(t, &pathTeller{a, told})
			var p path
			p.ask(e.link)
			e.Conn.mu.Lock()
			defer e.Conn.mu.Unlock()
			e.watch.answer = answer
			return e.roundTrip(&p)
		}
		if got := trip(700*ms, 0); got != want {
			t.Errorf("the connection tells %v: %v count, want %v", told, got, want)
		}
		if got := trip(0, 700*ms); got != want {
			t.Errorf("the connection tells %v, and the peer's answer took 700 ms: %v count, want %v", told, got, want)
		}
		if got := trip(time.Hour, 0); got != min(max(told, want), maxMeasured) && told > 0 {
			t.Errorf("the connection tells %v after a startup of an hour: %v count", told, got)
		}
		if got := trip(0, 0); got != min(told, maxMeasured) {
			t.Errorf("the connection tells %v: %v count where the startup tells nothing", told, got)
		}
	}
}

// An unsender is a pathTeller that has something to send yet.
type unsender struct {
	pathTeller
	unsent atomic.Bool
}

func (c *unsender) Unsent() bool { return c.unsent.Load() }

// TestUnsentTold: a FIN is held back while the connection tells of bytes that it has not sent, and then for a round
// trip.
func TestUnsentTold(t *testing.T) {
	const trip = 40 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		c := &unsender{pathTeller: pathTeller{a, trip}}
		e := newSetup(mpa.RoleInitiator).peerToPeer().on(t, c)
		newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
		synctest.Wait()
		c.unsent.Store(true)
		began := time.Now()
		e.BeginClose()
		time.Sleep(3*trip + trip/2) // of virtual time
		c.unsent.Store(false)
		for !e.finHeldBack().IsZero() {
			time.Sleep(time.Millisecond)
		}
		if held := time.Since(began); held < 5*trip || held > 5*trip+time.Millisecond {
			t.Errorf("the FIN was held back for %v", held)
		}
		e.Abort(nil)
	})
}
