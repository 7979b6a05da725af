package driver

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A strict is an Owner without a lock of its own: the race detector finds calls that do not follow each other, and
// inside finds those that meet.
type strict struct {
	unpolled     *Unpolled
	inside       atomic.Int32
	met          atomic.Int32 // calls that have met another
	heard        int
	sends, recvs []engine.Completion
	received     atomic.Int64   // recvs so far
	states       []engine.State // that it was told of
	end          *End
	over         chan struct{}
	late         int // calls after Ended
}

// enter begins each call. What it returns ends it.
func (s *strict) enter() (leave func()) {
	if s.inside.Add(1) > 1 {
		s.met.Add(1)
	}
	if s.end != nil {
		s.late++
	}
	return func() { s.inside.Add(-1) }
}

func (s *strict) Heard() {
	defer s.enter()()
	s.heard++
}

func (s *strict) Completed(done []engine.Completion, _ error) (waited bool) {
	defer s.enter()()
	for _, c := range done {
		if c.Op == engine.OpReceive {
			s.recvs = append(s.recvs, c)
			s.received.Add(1)
			s.unpolled.Recvs.Add(-1)
		} else {
			s.sends = append(s.sends, c)
			s.unpolled.Sends.Add(-1)
		}
	}
	return len(s.sends)%2 == 0
}

func (s *strict) Noticed(n *engine.Notice, _ error) {
	defer s.enter()()
	if n.Kind == engine.NoticeState {
		s.states = append(s.states, n.To)
	}
}

func (s *strict) Ended(e *End) {
	defer s.enter()()
	s.end = e
	close(s.over)
}

func (*strict) Settled(bool)  {}
func (*strict) Awaited() bool { return false }

// strictly has a connection hand up to a strict Owner.
func (s *setup) strictly() *strict {
	o := &strict{over: make(chan struct{})}
	s.conn.Owner = o
	return o
}

// wantInOrder expects completions with the numbers from 0 on, the flushed ones last. It returns how many were not
// flushed.
func wantInOrder(t *testing.T, what string, done []engine.Completion, posted uint64) (carriedOut int) {
	t.Helper()
	if uint64(len(done)) != posted {
		t.Errorf("%s: %d completions for %d requests", what, len(done), posted)
	}
	flushed := false
	for i, c := range done {
		if c.ID != uint64(i) {
			t.Fatalf("%s: completion %d is of request %d", what, i, c.ID)
		}
		switch {
		case c.Status == engine.StatusFlushed:
			flushed = true
		case c.Status != engine.StatusSuccess || flushed:
			t.Fatalf("%s: completion %d is %v, flushed before: %t", what, i, c.Status, flushed)
		default:
			carriedOut++
		}
	}
	return carriedOut
}

// A numbering posts requests with the numbers from 0 on, by several goroutines.
type numbering struct {
	mu   sync.Mutex
	next uint64
}

// post posts the next one, and reports whether to go on.
func (n *numbering) post(how func(id uint64) error) (more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := how(n.next)
	if err == nil {
		n.next++
	}
	return err == nil || errors.Is(err, engine.ErrQueueFull)
}

// until has a goroutine post until no more is taken.
func (n *numbering) until(wg *sync.WaitGroup, how func(id uint64) error) {
	wg.Go(func() {
		for n.post(how) {
			runtime.Gosched()
		}
	})
}

// TestHandsUpInOrder: many goroutines post, receive, poll and then close a connection at once. The QP gets everything
// in order, by one goroutine at a time, and every request comes back once; after the end it hears no more.
func TestHandsUpInOrder(t *testing.T) {
	for name, finish := range map[string]func(e *end){
		"closed":   func(e *end) { e.BeginClose() },
		"aborted":  func(e *end) { e.Abort(engine.ErrAborted) },
		"modified": func(e *end) { _ = e.Modify(engine.Terminate) },
		"lost":     func(e *end) { e.fail(io.ErrUnexpectedEOF) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := sockets(t)
			near, far := newSetup(mpa.RoleInitiator).peerToPeer(), newSetup(mpa.RoleResponder).peerToPeer()
			waits := engine.RNR{Bytes: 1 << 20, Messages: 64}
			near.machine.RNR, far.machine.RNR = waits, waits
			owners := [2]*strict{near.strictly(), far.strictly()}
			ends := [2]*end{near.on(t, a), far.on(t, b)}
			var wg sync.WaitGroup
			var sends, recvs [2]numbering
			for i, e := range ends {
				e.work(&wg, &sends[i], &recvs[i])
			}
			for i, e := range ends {
				e.await("messages", func() bool { return owners[i].received.Load() > 200 })
			}
			for range 3 {
				wg.Go(func() { finish(ends[0]) })
			}
			wg.Go(func() { ends[1].BeginClose() })
			wg.Wait()
			for i, o := range owners {
				<-o.over
				carriedOut := wantInOrder(t, "sends", o.sends, sends[i].next)
				if got := wantInOrder(t, "receives", o.recvs, recvs[i].next); carriedOut < 100 || got < 200 {
					t.Errorf("%d sends and %d receives were carried out", carriedOut, got)
				}
				if met := o.met.Load(); met > 0 || o.late > 0 || o.heard != 1 {
					t.Errorf("%d calls have met another, %d came after the end; heard %d times", met, o.late, o.heard)
				}
				if last := o.states[len(o.states)-1]; last != o.end.State {
					t.Errorf("told of %v at last, and ended in %v", last, o.end.State)
				}
			}
		})
	}
}

// work has many goroutines use a connection until it takes no more.
func (e *end) work(wg *sync.WaitGroup, sends, recvs *numbering) {
	for range 3 {
		sends.until(wg, func(id uint64) error { return e.PostSend(&engine.SendWork{ID: id}, 0, id%5 == 0) })
		recvs.until(wg, func(id uint64) error { return e.PostReceive(&engine.RecvWork{ID: id}) })
	}
	sends.until(wg, func(id uint64) error {
		_, err := e.PostSends([]engine.SendWork{{ID: id, Op: engine.OpSend}}, 0, time.Now(), id%2 == 0)
		return err
	})
	wg.Go(func() {
		for e.Status().Phase < Closed {
			e.Poll()
			e.Figures()
			runtime.Gosched()
		}
	})
}

// TestHandsUpManyRounds: where each completion brings about another, a poster hands up some of them, and somebody else
// the rest.
func TestHandsUpManyRounds(t *testing.T) {
	const rounds = 3 * maxHandUps
	s, e, n := newSetup(mpa.RoleInitiator), new(end), 0
	again := func() error {
		n++
		return e.PostSend(&engine.SendWork{Op: engine.OpWrite}, 0, true)
	}
	s.called = func(what string) {
		if what == "Completed" && n < rounds {
			_ = again()
		}
	}
	near, _ := sockets(t)
	e = s.on(t, near)
	if err := again(); err != nil {
		t.Fatal(err)
	}
	e.awaitCompletions(rounds)
}

// TestFiguresAfterHandUp: completions that are in their CQ are not on their way there any more.
func TestFiguresAfterHandUp(t *testing.T) {
	ini, res := pair(t)
	res.receive(1)
	ini.post(engine.SendWork{Op: engine.OpSend})
	for _, e := range []*end{ini, res} {
		e.awaitCompletions(1)
		e.await("the end of handing up", func() bool {
			f := e.Figures()
			return f.Sends == 0 && f.Recvs == 0 && f.ArrivingSends == 0 && f.ArrivingRecvs == 0
		})
	}
}

// TestSettledByWhoReceives: the Owner knows that who has handed up holds the receive buffer.
func TestSettledByWhoReceives(t *testing.T) {
	ini, res := pair(t)
	res.receive(1)
	ini.post(engine.SendWork{Op: engine.OpSend})
	res.awaitCompletions(1)
	res.await("the receiver", func() bool { return res.owner.settled[1].Load() > 0 })
	if n := res.owner.settled[0].Load(); n > 0 {
		t.Errorf("%d times without the receive buffer", n)
	}
}

// TestNothingToSettle: the Owner is not called where nothing was handed up, as after most posts.
func TestNothingToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := inMemory(t)
		synctest.Wait()
		settled := func() int64 { return e.owner.settled[0].Load() + e.owner.settled[1].Load() }
		before := settled()
		e.post(emptyWrite())
		synctest.Wait()
		if n := settled() - before; n > 0 || e.Figures().Stats.SentFPDUs == 0 {
			t.Errorf("%d times, with %+v", n, e.Figures().Stats)
		}
	})
}

// TestUnpolledFill: a request keeps its entry until its completion is polled.
func TestUnpolledFill(t *testing.T) {
	e, _ := pair(t)
	e.unpolled.Sends.Store(int64(e.cfg.SendDepth))
	e.unpolled.Recvs.Store(int64(e.cfg.RecvDepth))
	w := emptyWrite()
	if err := e.PostSend(&w, 0, false); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("a request: %v", err)
	}
	if err := e.PostReceive(new(engine.RecvWork)); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("a receive: %v", err)
	}
	e.unpolled.Sends.Store(0)
	e.unpolled.Recvs.Store(0)
	e.post(emptyWrite())
	e.receive(1)
}

// TestRoomAtOnce: who waits for room receives as soon as there is some.
func TestRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		waits := newSetup(mpa.RoleResponder)
		waits.machine.RNR = engine.RNR{Bytes: 1 << 10, Messages: 1}
		ini, res := newSetup(mpa.RoleInitiator).on(t, a), waits.on(t, b)
		const sends = 3
		for range sends {
			ini.post(engine.SendWork{Op: engine.OpSend})
			synctest.Wait()
		}
		for i := range sends {
			res.receive(uint64(i))
		}
		synctest.Wait()
		if n := len(res.completions()); n != sends {
			t.Errorf("%d messages came at once, want %d", n, sends)
		}
	})
}

// TestHeldBackAnew: for how long nothing is taken in is counted from the last time on.
func TestHeldBackAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		waits := newSetup(mpa.RoleResponder)
		waits.machine.RNR = engine.RNR{Bytes: 1 << 10, Messages: 1}
		ini, res := newSetup(mpa.RoleInitiator).on(t, a), waits.on(t, b)
		for id := range 2 {
			ini.post(engine.SendWork{Op: engine.OpSend})
			synctest.Wait()
			time.Sleep(time.Second)
			if d := res.HeldBack(true); d != time.Second {
				t.Errorf("%d: held back for %v, want 1 s", id, d)
			}
			if d := res.HeldBack(false); d != 0 {
				t.Errorf("%d: held back for %v, and no request waits for an answer", id, d)
			}
			res.receive(uint64(id))
			synctest.Wait()
			time.Sleep(time.Minute)
		}
	})
}

// A reporter is a connection that tells, when it is asked, whether it was lost.
type reporter struct {
	net.Conn
	lost  atomic.Bool
	asked atomic.Int32
}

func (r *reporter) LossError() error {
	if r.asked.Add(1); r.lost.Load() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// TestLooksWhileHeldBack: an end that takes in nothing learns within 2 s that the connection was lost, and looks no more
// often for long.
func TestLooksWhileHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Pipe("ini", "res")
		waits, held := newSetup(mpa.RoleResponder), &reporter{Conn: b}
		waits.machine.RNR = engine.RNR{Bytes: 1 << 10, Messages: 1}
		ini, res := newSetup(mpa.RoleInitiator).on(t, a), waits.on(t, held)
		ini.post(engine.SendWork{Op: engine.OpSend})
		time.Sleep(time.Minute)
		if n := held.asked.Load(); n < 30 || n > 33 {
			t.Errorf("it has looked %d times in a minute", n)
		}
		held.lost.Store(true)
		time.Sleep(2 * time.Second)
		if res.owner.ended() == nil {
			t.Error("it has not noticed the loss in 2 s")
		}
	})
}
