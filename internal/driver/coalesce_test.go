package driver

import (
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A burster posts requests on a connection over TCP, and tells how they were sent.
type burster struct {
	*end
	fpdus, calls uint64 // before the first post
}

func newBurster(t *testing.T) *burster {
	t.Helper()
	return newBursterOf(t, 4*batchPosts)
}

// newBursterOf is newBurster for a Send Queue of some depth.
func newBursterOf(t *testing.T, depth int) *burster {
	t.Helper()
	a, b := sockets(t)
	s := newSetup(mpa.RoleInitiator).peerToPeer()
	s.machine.SendDepth = depth
	x := &burster{end: s.on(t, a)}
	newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
	// The receiving goroutine sends it.
	x.await("the RTR indication", func() bool { fpdus, _ := x.sent(); return fpdus == 1 })
	x.settled()
	x.fpdus, x.calls = x.sent()
	return x
}

// sent counts FPDUs, and the calls that sent them.
func (b *burster) sent() (fpdus, calls uint64) {
	f := b.Figures()
	return f.Stats.SentFPDUs - b.fpdus, f.Counts.SendCalls - b.calls
}

// wantSent holds the counts against what is expected.
func (b *burster) wantSent(fpdus, calls uint64) {
	b.Helper()
	if f, c := b.sent(); f != fpdus || c != calls {
		b.Fatalf("%d FPDUs in %d calls, want %d in %d", f, c, fpdus, calls)
	}
}

// holdSender keeps the sending goroutine from coming to run until letGo is called.
func (e *end) holdSender() (letGo func()) {
	gate := make(chan struct{})
	e.Conn.mu.Lock()
	defer e.Conn.mu.Unlock()
	run := e.sender.run
	e.sender.run = func() { <-gate; run() }
	return sync.OnceFunc(func() { close(gate) })
}

// post posts n Writes of nothing: long after what was before, the first of them, and then as soon after one another as
// those of a burst. The sending goroutine does not come between.
func (b *burster) post(n int) { b.postSized(n, 0) }

// postSized is post with posts that count as so many bytes each.
func (b *burster) postSized(n, size int) {
	b.Helper()
	defer b.holdSender()()
	b.postAlone(n, size)
}

// postAlone is postSized where the sending goroutine is held.
func (b *burster) postAlone(n, size int) {
	b.Helper()
	b.setPushed(time.Time{})
	for range n {
		b.queue(1)
		b.push(1, size, time.Time{})
		b.setPushed(time.Now().Add(time.Hour)) // however long this takes, the next is soon enough
	}
}

// queue queues n Writes of nothing.
func (b *burster) queue(n int) {
	b.Helper()
	w := emptyWrite()
	b.queueAll(n, &w)
}

// queueAll queues a request n times.
func (b *burster) queueAll(n int, w *engine.SendWork) {
	b.Helper()
	b.Conn.mu.Lock()
	defer b.Conn.mu.Unlock()
	for range n {
		testrig.Must(b, b.queues().PostSend(w))
	}
}

// push ends a call that has queued so many requests, and that began at a time.
func (b *burster) push(posts, size int, began time.Time) {
	b.Conn.mu.Lock()
	b.releasePosted(posts, size, began)
}

func (b *burster) setPushed(at time.Time) {
	b.Conn.mu.Lock()
	defer b.Conn.mu.Unlock()
	b.burst.pushed = at
}

// pushed is when the last post was sent.
func (b *burster) pushed() time.Time {
	b.Conn.mu.Lock()
	defer b.Conn.mu.Unlock()
	return b.burst.pushed
}

// stuck has a sending goroutine be there that does not come to run.
func (b *burster) stuck() {
	b.Conn.mu.Lock()
	defer b.Conn.mu.Unlock()
	b.sender.state = running
}

// left returns how many requests are not complete.
func (e *end) left() int { return e.Figures().Sends }

// TestPostAtOnce: a post that does not follow closely on another is sent when the call returns.
func TestPostAtOnce(t *testing.T) {
	b := newBurster(t)
	for i := range uint64(20) {
		b.post(1)
		b.wantSent(i+1, i+1)
	}
}

// TestBurst: the first posts of a burst are sent one by one. The next are queued, and all go in one call when the
// sending goroutine comes to run, though nobody posts or polls any more.
func TestBurst(t *testing.T) {
	b := newBurster(t)
	b.post(burstFirst)
	b.wantSent(burstFirst, burstFirst)
	b.post(burstFirst + 20)
	b.settled()
	b.wantSent(2*burstFirst+20, 2*burstFirst+1)
}

// TestBatch: a batch that is worth a call, by its posts or by their bytes, does not wait for the sending goroutine.
func TestBatch(t *testing.T) {
	b := newBurster(t)
	b.post(burstFirst + batchPosts)
	b.wantSent(burstFirst+batchPosts, burstFirst+1)
	b = newBurster(t)
	b.postSized(burstFirst+8, batchSize/8)
	b.wantSent(burstFirst+8, burstFirst+1)
}

// TestLastOfBatch: nor does it wait for whoever comes to run: its last post sends all of it, and the one before does
// not. So it is with the next batch.
func TestLastOfBatch(t *testing.T) {
	for _, c := range []struct{ posts, size int }{{batchPosts, 0}, {8, batchSize / 8}} {
		b := newBurster(t)
		b.stuck()
		steps := []struct{ posts, left int }{{c.posts - 1, c.posts - 1}, {1, 0}}
		for _, step := range append(steps, steps...) {
			b.postAlone(step.posts, c.size)
			if n := b.left(); n != step.left {
				t.Errorf("%d posts of %d bytes: %d are left, want %d", c.posts, c.size, n, step.left)
			}
		}
		b.sender.run()
		b.wantSent(2*uint64(c.posts), 2)
	}
}

// TestBurstFromLastWrite: a post belongs to a burst by when the write of the one before was over.
func TestBurstFromLastWrite(t *testing.T) {
	b := newBurster(t)
	letGo := b.holdSender()
	b.setPushed(time.Time{})
	for range burstFirst + 1 {
		b.queue(1)
		b.push(1, 0, b.pushed()) // the first now, and the next as soon as that is sent
	}
	if n := b.left(); n != 1 {
		t.Errorf("%d requests are queued, want the last", n)
	}
	letGo()
	b.settled()
	b.wantSent(burstFirst+1, burstFirst+1)
}

// TestBurstFromNoWrite: where a post writes nothing, as that of a local operation, the next one follows on its call.
func TestBurstFromNoWrite(t *testing.T) {
	b := newBurster(t)
	at := time.Now().Add(time.Hour)
	b.push(1, 0, at)
	b.wantSent(0, 0)
	if got := b.pushed(); !got.Equal(at) {
		t.Errorf("%v from the call", got.Sub(at))
	}
}

// TestBatchOfHalfTheQueue: a batch of half the Send Queue does not wait for the sending goroutine, so that there is
// room for what is posted meanwhile.
func TestBatchOfHalfTheQueue(t *testing.T) {
	const depth = 32
	b := newBursterOf(t, depth)
	b.post(burstFirst + depth/2)
	b.wantSent(burstFirst+depth/2, burstFirst+1)
}

// TestPollEndsBatch: what a consumer that polls in vain has sent is not of the next batch, neither its posts nor their
// bytes.
func TestPollEndsBatch(t *testing.T) {
	for _, size := range []int{0, batchSize / batchPosts} {
		b := newBurster(t)
		b.stuck()
		for range 2 {
			b.postAlone(batchPosts-1, size)
			if n := b.left(); n != batchPosts-1 {
				t.Errorf("posts of %d bytes: %d of %d are queued", size, n, batchPosts-1)
			}
			if !b.Poll() {
				t.Error("Poll has sent nothing")
			}
		}
		b.sender.run()
		b.wantSent(2*(batchPosts-1), 2)
	}
}

// TestPollSendsBatch: a consumer that polls in vain sends what is queued: it need not wait for the sending goroutine,
// which finds nothing left.
func TestPollSendsBatch(t *testing.T) {
	b := newBurster(t)
	letGo := b.holdSender()
	b.postAlone(burstFirst+20, 0)
	if n := b.left(); n != 20 {
		t.Errorf("%d requests are queued", n)
	}
	b.Poll()
	if n := b.left(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
	letGo()
	b.settled()
	b.wantSent(burstFirst+20, burstFirst+1)
}

// TestBurstGoesOn: a short pause does not end a burst: the posts after it are queued like those before. A long one
// does, and so do several short ones.
func TestBurstGoesOn(t *testing.T) {
	const gap, pause, long = burstGap - 1, burstPause - 1, burstPause
	var b burst
	for i, step := range []struct {
		after time.Duration
		posts int // that follow closely, after the first
		burst bool
	}{
		{long, 0, false},
		{long, burstFirst - 1, false},
		{gap, 0, true},
		{gap, burstFirst, true},
		{pause, burstFirst, true},
		{pause, 0, true},
		{pause, 0, false},
		{pause, 0, false},
		{gap, 20, true},
		{pause, 0, true},
		{gap, 1000, true},
		{pause, 0, true},
		{pause, 0, true},
		{pause, 0, true},
		{pause, 0, false},
		{gap, 20, true},
		{long, 0, false},
		{gap, 0, false},
		{long, burstFirst - 1, false},
		{burstGap, 0, false},
	} {
		got := b.goesOn(step.after)
		for range step.posts {
			got = b.goesOn(gap)
		}
		if got != step.burst {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// TestBurstOfLists: lists that follow each other are a burst, too: the first few are sent one by one, and the next go
// with those after them, or as soon as they are worth a call.
func TestBurstOfLists(t *testing.T) {
	const list = 32
	b := newBurster(t)
	post := func(n int) {
		defer b.holdSender()()
		b.setPushed(time.Time{})
		for range n {
			b.queue(list)
			b.push(list, 0, b.pushed()) // as soon as the write before was done
			b.setPushed(time.Now().Add(time.Hour))
		}
	}
	post(burstFirst)
	b.wantSent(list*burstFirst, burstFirst)
	post(burstFirst + batchPosts/list)
	b.wantSent(2*list*burstFirst+batchPosts, 2*burstFirst+1)
	b.settled() // the sending goroutine, which found nothing
	post(burstFirst + 2)
	b.settled()
	b.wantSent(3*list*burstFirst+batchPosts+2*list, 3*burstFirst+2)
}
