package driver

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestGivesMemoryBack: the queues of a connection, which a burst has filled, give their memory back when they have been
// empty for a while.
func TestGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, peer := inMemory(t)
		slack := func() bool {
			e.Conn.mu.Lock()
			defer e.Conn.mu.Unlock()
			return e.machine.Slack()
		}
		sendBurst(e, peer)
		if n := len(e.completions()); n != 100 || !slack() {
			t.Fatalf("%d completions, and there is something to give back: %t", n, slack())
		}
		time.Sleep(time.Minute) // of virtual time
		if slack() {
			t.Error("memory is left")
		}
		e.Abort(engine.ErrAborted)
		peer.Abort(engine.ErrAborted)
	})
}

// sendBurst sends 100 messages.
func sendBurst(e, peer *end) {
	for id := range uint64(100) {
		e.receive(id)
	}
	for range 100 {
		peer.post(engine.SendWork{Op: engine.OpSend})
	}
	synctest.Wait()
}

// TestEndedForgotten: a connection that has ended is not kept until the next time that memory is given back.
func TestEndedForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		s, r := newSetup(mpa.RoleInitiator), new(reclaim.Reclaimer)
		e, m := s.prepared(t, a)
		e.cfg.Reclaimer = r
		e.Start(m)
		peer := newSetup(mpa.RoleInitiator).on(t, b)
		sendBurst(e, peer)
		e.Abort(engine.ErrAborted)
		e.awaitEnd()
		peer.Abort(engine.ErrAborted)
		synctest.Wait()
		was := weak.Make(e.Conn)
		e = nil
		for range 3 { // what is in pools goes at the second
			runtime.GC()
		}
		if was.Value() != nil {
			t.Error("the connection is kept")
		}
		runtime.KeepAlive(r)
	})
}

// TestPolledMemory: one who polls leaves a large buffer at the connection for what comes next. It is given back when
// nothing does.
func TestPolledMemory(t *testing.T) {
	var ends []*end
	for range 10 {
		a, b := sockets(t)
		ends = append(ends, newSetup(mpa.RoleInitiator).on(t, a), newSetup(mpa.RoleInitiator).on(t, b))
	}
	before, _ := procstat.Held()
	for i := range 50 * len(ends) {
		from, to := ends[i%len(ends)], ends[i%len(ends)^1]
		had := to.received.Load()
		to.receive(0)
		to.tcp.SuppressWakeUps() // so that no other goroutine gives the buffer back
		from.post(engine.SendWork{Op: engine.OpSend, Unsignaled: true})
		for to.received.Load() == had {
			to.Poll()
			runtime.Gosched()
		}
	}
	for _, e := range ends {
		e.owner.done, e.causes = nil, nil
	}
	// On a busy machine a receiving goroutine may be in the middle of a read, and gives the buffer back after that.
	for ctx := testrig.Within(t); ; time.Sleep(time.Millisecond) {
		for _, e := range ends {
			e.Reclaim()
		}
		after, _ := procstat.Held()
		left := (int64(after) - int64(before)) / int64(len(ends))
		if left <= 8<<10 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are left of an end", left)
		}
	}
}
