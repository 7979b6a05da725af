package iwarp

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// inMemory returns the Initiator of a connection in memory, for virtual time.
func inMemory(t *testing.T) *QP {
	t.Helper()
	a, b := testrig.Pipe("ini", "res")
	_, _ = a.SetWriteBuffer(-1), b.SetWriteBuffer(-1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		if req, err := Respond(ctx, b, nil, ListenConfig{}); err == nil {
			_, _ = req.Accept(ctx, AcceptConfig{})
		}
	}()
	qp, err := new(Dialer).Initiate(ctx, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the RTR indication has gone
	return qp
}

// TestPolledFor: a closer polls for up to 200 µs, and not if there is nothing to wait for.
func TestPolledFor(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		at   time.Time
		want bool
	}{
		{time.Time{}, false}, {now.Add(-time.Hour), true}, {now, true}, {now.Add(pollTime), true}, {now.Add(pollTime + 1), false},
	} {
		if got := polledFor(c.at, now); got != c.want {
			t.Errorf("%v from now: %t", c.at.Sub(now), got)
		}
	}
}

// TestPollQuiet has a FIN held back while the timer that would send it is late: who polls sends it when its
// time has come, and not before.
func TestPollQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := inMemory(t)
		qp.mu.Lock()
		qp.eng.BeginClose(time.Now(), pollTime)
		qp.settle()
		qp.mu.Unlock()
		if qp.pollQuiet(); qp.quiet().IsZero() { // while the time stands still
			t.Error("the FIN is sent before its time")
		}
		qp.mu.Lock()
		qp.timer.Set(time.Now().Add(time.Hour), qp, (*QP).onTimer)
		qp.mu.Unlock()
		time.Sleep(pollTime) // of virtual time
		if qp.pollQuiet(); !qp.quiet().IsZero() {
			t.Error("the FIN is still held back")
		}
		_ = qp.Abort()
	})
}

// A pathTeller is a connection that knows how long its path is.
type pathTeller struct {
	net.Conn
	trip time.Duration
}

func (c *pathTeller) RoundTrip() time.Duration { return c.trip }

// TestTripTold: a round trip that the connection tells counts, and not the startup, for which the peer may have taken its time, if that is
// longer.
func TestTripTold(t *testing.T) {
	const ms = time.Millisecond
	for told, want := range map[time.Duration]time.Duration{3 * ms: 3 * ms, 0: 700 * ms, time.Hour: 700 * ms} {
		synctest.Test(t, func(t *testing.T) {
			a, b := testrig.Pipe("ini", "res")
			go func() {
				time.Sleep(700 * time.Millisecond)
				if req, err := Respond(t.Context(), b, nil, ListenConfig{}); err == nil {
					_, _ = req.Accept(t.Context(), AcceptConfig{})
				}
			}()
			qp, err := new(Dialer).Initiate(t.Context(), &pathTeller{a, told}, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := qp.asked()
			qp.mu.Lock()
			got := qp.roundTrip(&p)
			qp.neg.RTT, qp.watch.answer = 0, 0
			alone := qp.roundTrip(&p)
			qp.mu.Unlock()
			if got != want || alone != min(told, maxMeasured) {
				t.Errorf("the connection tells %v: %v count, want %v; and %v where the startup tells nothing", told, got, want, alone)
			}
			_ = qp.Abort()
		})
	}
}

// An unsender is a pathTeller that has something to send yet.
type unsender struct {
	pathTeller
	unsent atomic.Bool
}

func (c *unsender) Unsent() bool { return c.unsent.Load() }

// TestUnsentTold: a FIN is held back while the connection tells of octets that it has not sent, and then for a round trip.
func TestUnsentTold(t *testing.T) {
	const trip = 40 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		go func() {
			if req, err := Respond(t.Context(), b, nil, ListenConfig{}); err == nil {
				_, _ = req.Accept(t.Context(), AcceptConfig{})
			}
		}()
		c := &unsender{pathTeller: pathTeller{a, trip}}
		qp, err := (&Dialer{QP: QPConfig{Nudge: -1}}).Initiate(t.Context(), c, nil) // a nudge would go out meanwhile
		testrig.Must(t, err)
		synctest.Wait()
		c.unsent.Store(true)
		began := time.Now()
		qp.beginClose()
		time.Sleep(3*trip + trip/2) // of virtual time
		c.unsent.Store(false)
		for !qp.quiet().IsZero() {
			time.Sleep(time.Millisecond)
		}
		if held := time.Since(began); held < 5*trip || held > 5*trip+time.Millisecond {
			t.Errorf("the FIN was held back for %v", held)
		}
		_ = qp.Abort()
	})
}

// TestAnswerMeasured: an Initiator's RTR indication, which we wait for, tells how long the path is. No other
// first FPDU does: it comes when the peer's consumer has something to say.
func TestAnswerMeasured(t *testing.T) {
	for _, c := range []struct {
		role       mpa.Role
		peerToPeer bool
		want       time.Duration
	}{
		{mpa.RoleResponder, true, time.Second},
		{mpa.RoleResponder, false, 0},
		{mpa.RoleInitiator, true, 0},
		{mpa.RoleInitiator, false, 0},
	} {
		var qp QP
		qp.neg = &Negotiated{Negotiated: mpa.Negotiated{Role: c.role, PeerToPeer: c.peerToPeer}}
		qp.watchOver(lease{})
		for _, after := range []time.Duration{time.Second, time.Minute} {
			qp.watch.note(qp.watch.began.Add(after), true)
		}
		if got := qp.watch.answer; got != c.want {
			t.Errorf("%v, peer-to-peer %t: %v, want %v", c.role, c.peerToPeer, got, c.want)
		}
	}
}

// TestNothingToWatch: a timer that fires when there is nothing more to watch over ends nothing.
func TestNothingToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := inMemory(t)
		qp.onWatch()
		if s := qp.State(); s != StateRTS {
			t.Errorf("state %v", s)
		}
		_ = qp.Abort()
	})
}
