package driver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// sendOwn sends as a poster whose last request is the one in front of a position. It returns the writes that took.
func (b *burster) sendOwn(own uint64) (writes uint64) {
	_, before := b.sent()
	b.Conn.mu.Lock()
	b.release(turn{mode: sendOwn, now: b.now(), own: own})
	_, after := b.sent()
	return after - before
}

// positionInQueue is that of what is posted next.
func (b *burster) positionInQueue() uint64 {
	b.Conn.mu.Lock()
	defer b.Conn.mu.Unlock()
	return b.machine.Posted()
}

// TestPosterShare: a poster sends its own work, and of what others have posted no more than its share: then the sending
// goroutine goes on with it. Its own work is not cut short.
func TestPosterShare(t *testing.T) {
	const n = 64 << 10
	b := newBurster(t)
	w := engine.SendWork{Op: engine.OpWrite, SGL: listOf(b.region(make([]byte, n), 0), n), Unsignaled: true}
	defer b.holdSender()()
	b.queueAll(2, &w) // which the peer refuses, in time
	own := b.positionInQueue()
	b.queueAll(60, &w) // others post while the poster is at it
	if writes := b.sendOwn(own); writes < 1 || writes > 3+maxShare {
		t.Errorf("%d gathered writes for 2 requests of its own", writes)
	}
}

// keepsGather reports whether the connection has memory to send from.
func (e *end) keepsGather() bool {
	e.Conn.mu.Lock()
	defer e.Conn.mu.Unlock()
	return e.sender.gather != nil
}

// TestPosterHandsOver: a poster that finds much of what others have posted sends a bounded share of that, and hands the
// rest over: nothing is left behind, although nobody posts or polls any more. The memory that was sent from is given
// back.
func TestPosterHandsOver(t *testing.T) {
	const posts = 1<<15 - 1 // Writes of nothing, which are nine Gathers: many more than a share
	for range 10 {          // the socket may not take as much at once
		b := newBursterOf(t, posts)
		letGo := b.holdSender()
		own := b.positionInQueue() + 1
		b.queue(posts)
		writes := b.sendOwn(own)
		left := b.left()
		letGo()
		if writes > 1+maxShare {
			t.Fatalf("%d writes, the share is %d", writes, maxShare)
		}
		b.settled()
		if b.keepsGather() {
			t.Fatal("the memory to send from is kept")
		}
		if left > 0 && writes == 1+maxShare {
			return
		}
	}
	t.Error("no poster has handed over")
}

// TestLocalWorkKeepsNothing: work that sends nothing keeps no memory to send from.
func TestLocalWorkKeepsNothing(t *testing.T) {
	b := newBurster(t)
	b.end.post(engine.SendWork{Op: engine.OpLocalInvalidate, Target: b.region(make([]byte, 8), memory.LocalWrite)})
	b.settled()
	if done := b.completions(); len(done) != 1 || done[0].Status != engine.StatusSuccess {
		t.Errorf("completions: %+v", done)
	}
	if b.keepsGather() {
		t.Error("the memory to send from is kept")
	}
}

// toBlocked has an end send a request, and then others by a Send that waits for a peer which takes nothing.
func toBlocked(t *testing.T, others func(e *end)) *end {
	stream, sends := newSegments(), make(chan struct{})
	stream.each = func(call string) {
		if call == "Send" {
			select {
			case <-sends:
			case <-stream.closed:
			}
		}
	}
	s := newSetup(mpa.RoleInitiator)
	s.machine.CloseTimeout, s.conn.Waiters = time.Second, new(atomic.Int32)
	e := s.over(t, stream)
	e.post(emptyWrite())
	synctest.Wait()
	others(e)
	sends <- struct{}{}
	synctest.Wait()
	return e
}

// TestLocalWorkOfBlockedSender: what a local operation comes to does not wait for the request after it, which the
// lower layer does not take.
func TestLocalWorkOfBlockedSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := toBlocked(t, func(e *end) {
			e.post(engine.SendWork{ID: 1, Op: engine.OpLocalInvalidate,
				Target: e.region(make([]byte, 8), memory.LocalWrite)})
			e.post(engine.SendWork{ID: 2, Op: engine.OpWrite})
		})
		if done := e.completions(); len(done) != 1 || done[0].ID != 1 || done[0].Status != engine.StatusSuccess {
			t.Errorf("completions: %+v", done)
		}
	})
}

// TestFailedLocalWorkOfBlockedSender: a local operation that fails ends the connection in time, though the lower layer
// does not take the request before it.
func TestFailedLocalWorkOfBlockedSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := toBlocked(t, func(e *end) {
			e.post(engine.SendWork{ID: 1, Op: engine.OpWrite})
			e.post(engine.SendWork{ID: 2, Op: engine.OpLocalInvalidate})
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if e.ended() == nil {
			t.Error("the connection goes on")
		}
	})
}

// TestRoomBehindBlockedSender: who waits for room learns of what the first write has left, though the second waits for
// the peer.
func TestRoomBehindBlockedSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before int64
		e := toBlocked(t, func(e *end) {
			e.post(emptyWrite())
			e.cfg.Waiters.Add(1)
			before = e.owner.settled[0].Load()
		})
		if n, posted := e.owner.settled[0].Load()-before, e.left(); n != 1 || posted != 1 {
			t.Errorf("%d requests are left, and who waits was told %d times, want 1 and 1", posted, n)
		}
	})
}
