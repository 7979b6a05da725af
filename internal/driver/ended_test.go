package driver

import (
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// tooLate is what goroutines do that do not know yet that their connection has ended: timers, those that receive and
// send, and consumers that still hold it. Each reports whether it was refused, where it can be.
var tooLate = map[string]func(e *end) (refused bool){
	"a deadline":             func(e *end) bool { e.onTimer(); return true },
	"the watch":              func(e *end) bool { e.onWatch(); return true },
	"a loss":                 func(e *end) bool { e.fail(io.ErrUnexpectedEOF); return true },
	"the ACK of the FIN":     func(e *end) bool { e.receiver().finAcked(); return true },
	"who hands on":           func(e *end) bool { e.turn(turn{mode: sendNothing}); return true },
	"who sends":              func(e *end) bool { e.sender.run(); return true },
	"who receives":           func(e *end) bool { return !e.receiver().received(nil) },
	"who receives an end":    func(e *end) bool { return !e.receiver().received(io.EOF) },
	"bytes ahead of order":   func(e *end) bool { e.receiver().early(0, make([]byte, 100)); return true },
	"room":                   func(e *end) bool { e.wakeReceiver(); return true },
	"memory to give back":    func(e *end) bool { return !e.Reclaim() },
	"others who want memory": func(e *end) bool { e.HoldsTooMuch(errors.New("others")); return true },
	"who polls":              func(e *end) bool { e.Poll(); return true },
	"who polls for the FIN":  func(e *end) bool { e.PollFIN(); return true },
	"who begins to wait":     func(e *end) bool { e.RearmReads(); return true },
	"who receives for itself": func(e *end) bool {
		n := nap{interrupted: true}
		e.ReceiveFor(e.Context(), &n)
		return n.interrupted
	},
	"a receive of an SRQ":    func(e *end) bool { e.Ready(); return true },
	"Close":                  func(e *end) bool { e.BeginClose(); return true },
	"CloseWrite":             func(e *end) bool { return errors.Is(e.BeginHalfClose(), ErrEnded) },
	"Abort":                  func(e *end) bool { e.Abort(errors.New("late")); return true },
	"Deny":                   func(e *end) bool { e.Deny(memory.RemoteRead); return true },
	"a post":                 func(e *end) bool { return refusesPost(e, false) },
	"a post and a wait":      func(e *end) bool { return refusesPost(e, true) },
	"a list":                 func(e *end) bool { return refusesList(e, false) },
	"posts that go together": func(e *end) bool { return refusesList(e, true) },
	"a receive":              func(e *end) bool { return errors.Is(e.PostReceive(new(engine.RecvWork)), ErrEnded) },
	"a receive taken back":   func(e *end) bool { ok, _ := e.TakeBackReceive(1); return !ok },
	"Modify to Idle":         func(e *end) bool { return errors.Is(e.Modify(engine.Idle), engine.ErrBadState) },
	"Modify to Error":        func(e *end) bool { return errors.Is(e.Modify(engine.Error), engine.ErrBadState) },
	"Modify to Closing":      func(e *end) bool { return errors.Is(e.Modify(engine.Closing), engine.ErrBadState) },
	"Modify to Terminate":    func(e *end) bool { return errors.Is(e.Modify(engine.Terminate), engine.ErrBadState) },
}

// refusesPost reports whether a request is refused.
func refusesPost(e *end, waits bool) bool {
	return errors.Is(e.PostSend(new(engine.SendWork), 0, waits), ErrEnded)
}

// refusesList reports whether of a list nothing is posted.
func refusesList(e *end, whole bool) bool {
	n, err := e.PostSends(make([]engine.SendWork, 3), 0, time.Now(), whole)
	return n == 0 && errors.Is(err, ErrEnded)
}

// TestTooLate: after the end of a connection the QP hears nothing of it any more, and it stays as it has ended,
// whatever goroutines do that learn of the end later.
func TestTooLate(t *testing.T) {
	for how, finish := range map[string]func(e, peer *end){
		"in order":       func(e, peer *end) { e.BeginClose(); peer.BeginClose() },
		"aborted":        func(e, _ *end) { e.Abort(engine.ErrAborted) },
		"by a Terminate": func(_, peer *end) { _ = peer.Modify(engine.Terminate) },
	} {
		for _, what := range slices.Sorted(maps.Keys(tooLate)) {
			synctest.Test(t, func(t *testing.T) {
				a, b := testrig.Pipe("ini", "res")
				s := newSetup(mpa.RoleInitiator).peerToPeer()
				s.conn.IdleTimeout = 10 * time.Minute
				e, peer := s.on(t, a), newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
				synctest.Wait()
				finish(e, peer)
				e.awaitEnd()
				time.Sleep(time.Hour) // of virtual time: no timer is left
				before, figures := e.Status(), e.Figures()
				if !tooLate[what](e) {
					t.Errorf("%s, %s: is not refused", how, what)
				}
				time.Sleep(time.Hour)
				if after := e.Status(); after != before || after.Phase != Over || after.State != e.owner.end.State {
					t.Errorf("%s, %s: %+v becomes %+v", how, what, before, after)
				}
				if after := e.Figures(); after.Counts != figures.Counts || after.Sends != 0 || after.Recvs != 0 {
					t.Errorf("%s, %s: %+v becomes %+v", how, what, figures, after)
				}
				if len(e.late) > 0 {
					t.Errorf("%s, %s: the QP hears of %v", how, what, e.late)
				}
			})
		}
	}
}

// TestTerminateRefuses: no more work is taken while a Terminate is on its way to the peer.
func TestTerminateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		defer b.Close()
		e := newSetup(mpa.RoleInitiator).on(t, a)
		testrig.Must(t, e.Modify(engine.Terminate))
		synctest.Wait()
		for _, what := range []string{"a post", "a post and a wait", "a list", "posts that go together", "a receive"} {
			if !tooLate[what](e) {
				t.Errorf("%s is not refused", what)
			}
		}
		if s := e.Status().State; s != engine.Terminate {
			t.Errorf("state %v", s)
		}
	})
}

// TestHeldByWrite: a Write of the consumer's holds the end of the connection up, and that of a socket does not, as the
// socket's Close ends it.
func TestHeldByWrite(t *testing.T) {
	socket, _ := pair(t)
	foreign, _ := inMemory(t)
	for e, want := range map[*end]bool{socket: false, foreign: true} {
		e.settled()
		held := e.Status().Held
		e.Conn.mu.Lock()
		w, g := emptyWrite(), engine.NewGather()
		testrig.Must(t, e.queues().PostSend(&w))
		e.machine.Output(e.now(), g)
		e.Conn.mu.Unlock()
		if during := e.Status().Held; held || during != want {
			t.Errorf("before a Write %t, during it %t, want %t", held, during, want)
		}
		e.Conn.mu.Lock()
		e.machine.Abandon(e.now(), g)
		e.Conn.mu.Unlock()
	}
}

// A stubborn is a connection whose calls do not end with it: its Write and its Read return when the test has them do
// so.
type stubborn struct {
	*testrig.Conn
	wrote, read chan struct{}
	got         []byte // what the last Read brings; nil: an error
}

func (c *stubborn) Write(b []byte) (int, error) {
	<-c.wrote
	return c.Conn.Write(b)
}

func (c *stubborn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	<-c.read
	if c.got == nil {
		return 0, err
	}
	return copy(b, c.got), nil
}

// TestBlockedWriter: a connection is not over before who writes has come back, as it has the consumer's memory. Who
// reads may come back later, with whatever it brings: that is nobody's any more.
func TestBlockedWriter(t *testing.T) {
	for _, got := range [][]byte{nil, make([]byte, 64)} {
		synctest.Test(t, func(t *testing.T) {
			a, b := testrig.Pipe("ini", "res")
			c := &stubborn{a, make(chan struct{}), make(chan struct{}), got}
			e := newSetup(mpa.RoleInitiator).on(t, c)
			peer := newSetup(mpa.RoleResponder).on(t, b)
			e.post(engine.SendWork{ID: 1, Op: engine.OpWrite})
			synctest.Wait()
			e.Abort(engine.ErrAborted)
			time.Sleep(time.Hour) // of virtual time
			if e.ended() != nil {
				t.Error("the connection is over, and somebody writes for it")
			}
			close(c.wrote)
			synctest.Wait()
			if done := e.completions(); e.ended() == nil || len(done) != 1 || done[0].ID != 1 {
				t.Errorf("over: %t, with %+v", e.ended() != nil, done)
			}
			calls := e.Figures().Counts
			close(c.read)
			time.Sleep(time.Hour)
			if after := e.Figures().Counts; len(e.late) > 0 || after != calls {
				t.Errorf("the QP hears of %v; %+v calls become %+v", e.late, calls, after)
			}
			peer.Abort(engine.ErrAborted)
			synctest.Wait()
		})
	}
}
