package iwarp

import (
	"runtime"
	"testing"
	"time"
)

// A burster posts requests on a connection over TCP, and tells how they were sent.
type burster struct {
	*testing.T
	qp           *QP
	fpdus, calls uint64 // before the first post
}

func newBurster(t *testing.T) *burster {
	t.Helper()
	return newBursterOf(t, 4*batchPosts)
}

// newBursterOf is newBurster for a Send Queue of some depth.
func newBursterOf(t *testing.T, depth int) *burster {
	t.Helper()
	// A nudge would count as well.
	b := &burster{T: t, qp: dialed(t, Dialer{QP: QPConfig{SendDepth: depth, Nudge: -1}})}
	b.settled()
	b.fpdus, b.calls = b.sent()
	return b
}

// sent counts FPDUs, and the calls that sent them.
func (b *burster) sent() (fpdus, calls uint64) {
	s := b.qp.Stats()
	return s.SentFPDUs - b.fpdus, s.SendCalls - b.calls
}

// wantSent holds the counts against what is expected.
func (b *burster) wantSent(fpdus, calls uint64) {
	b.Helper()
	if f, c := b.sent(); f != fpdus || c != calls {
		b.Fatalf("%d FPDUs in %d calls, want %d in %d", f, c, fpdus, calls)
	}
}

// post posts n Writes of nothing: long after what was before, the first of them, and then
// as soon after one another as those of a burst. The lock is held as long as nothing is
// sent, so that the sending goroutine does not come between.
func (b *burster) post(n int) { b.postSized(n, 0) }

// postSized is post with posts that count as so many octets each.
func (b *burster) postSized(n, size int) {
	b.Helper()
	b.qp.mu.Lock()
	defer b.qp.mu.Unlock()
	b.postUnlocking(n, size)
}

func (b *burster) postUnlocking(n, size int) {
	b.Helper()
	b.qp.pushed = time.Time{}
	for range n {
		if err := b.qp.queueSend(&SendWR{Op: OpWrite, Unsignaled: true}, nil); err != nil {
			b.Fatal(err)
		}
		b.qp.pushPostedUnlocking(1, size, time.Time{})
		b.qp.pushed = time.Now().Add(time.Hour) // however long this takes, the next is soon enough
	}
}

// settled waits until nothing is left to send, and no goroutine that would send it.
func (b *burster) settled() {
	for {
		b.qp.mu.Lock()
		n, _ := b.qp.eng.Outstanding()
		idle := n == 0 && !b.qp.sender && !b.qp.writing
		b.qp.mu.Unlock()
		if idle {
			return
		}
		runtime.Gosched()
	}
}

// A post that does not follow closely on another is sent when PostSend returns.
func TestPostAtOnce(t *testing.T) {
	b := newBurster(t)
	for i := range uint64(20) {
		b.post(1)
		b.wantSent(i+1, i+1)
	}
}

// The first posts of a burst are sent one by one. The next are queued, and all go in one
// call when the sending goroutine comes to run, though nobody posts or polls any more.
func TestBurst(t *testing.T) {
	b := newBurster(t)
	b.post(burstFirst)
	b.wantSent(burstFirst, burstFirst)
	b.post(burstFirst + 20)
	b.settled()
	b.wantSent(2*burstFirst+20, 2*burstFirst+1)
}

// A batch that is worth a call, by its posts or by their octets, does not wait for the sending goroutine.
func TestBatch(t *testing.T) {
	b := newBurster(t)
	b.post(burstFirst + batchPosts)
	b.wantSent(burstFirst+batchPosts, burstFirst+1)
	b = newBurster(t)
	b.postSized(burstFirst+8, batchSize/8)
	b.wantSent(burstFirst+8, burstFirst+1)
}

// Nor does it wait for whoever comes to run: its last post sends all of it, and the one before does not.
func TestLastOfBatch(t *testing.T) {
	for _, c := range []struct{ posts, size int }{{batchPosts, 0}, {8, batchSize / 8}} {
		b := newBurster(t)
		b.qp.mu.Lock()
		b.qp.sender = true // one that does not come to run
		for _, step := range []struct{ posts, left int }{{c.posts - 1, c.posts - 1}, {1, 0}} {
			b.postUnlocking(step.posts, c.size)
			if n, _ := b.qp.eng.Outstanding(); n != step.left {
				t.Errorf("%d posts of %d octets: %d are left, want %d", c.posts, c.size, n, step.left)
			}
		}
		b.qp.mu.Unlock()
		b.qp.send()
		b.wantSent(uint64(c.posts), 1)
	}
}

// A post belongs to a burst by when the write of the one before was over.
func TestBurstFromLastWrite(t *testing.T) {
	b := newBurster(t)
	b.qp.mu.Lock()
	b.qp.pushed = time.Time{}
	for range burstFirst + 1 {
		if err := b.qp.queueSend(&SendWR{Op: OpWrite, Unsignaled: true}, nil); err != nil {
			t.Fatal(err)
		}
		b.qp.pushPostedUnlocking(1, 0, b.qp.pushed) // the first now, and the next as soon as that is sent
	}
	if n, _ := b.qp.eng.Outstanding(); n != 1 {
		t.Errorf("%d requests are queued, want the last", n)
	}
	b.qp.mu.Unlock()
	b.settled()
	b.wantSent(burstFirst+1, burstFirst+1)
}

// A batch of half the Send Queue does not wait for the sending goroutine, so that there is room for what is posted meanwhile.
func TestBatchOfHalfTheQueue(t *testing.T) {
	const depth = 32
	b := newBursterOf(t, depth)
	b.post(burstFirst + depth/2)
	b.wantSent(burstFirst+depth/2, burstFirst+1)
}

// What a consumer that polls in vain has sent is not of the next batch, neither its posts nor their octets.
func TestPollEndsBatch(t *testing.T) {
	for _, size := range []int{0, batchSize / batchPosts} {
		b := newBurster(t)
		b.qp.mu.Lock()
		b.qp.sender = true // one that does not come to run
		for range 2 {
			b.postUnlocking(batchPosts-1, size)
			if n, _ := b.qp.eng.Outstanding(); n != batchPosts-1 {
				t.Errorf("posts of %d octets: %d of %d are queued", size, n, batchPosts-1)
			}
			b.qp.flushUnlocking()
		}
		b.qp.mu.Unlock()
		b.qp.send()
		b.wantSent(2*(batchPosts-1), 2)
	}
}

// A consumer that polls in vain sends what is queued: it need not wait for the sending
// goroutine, which finds nothing left.
func TestPollSendsBatch(t *testing.T) {
	b := newBurster(t)
	b.qp.mu.Lock()
	b.postUnlocking(burstFirst+20, 0)
	b.qp.flushUnlocking()
	if n, _ := b.qp.eng.Outstanding(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
	b.qp.mu.Unlock()
	b.settled()
	b.wantSent(burstFirst+20, burstFirst+1)
}

// A consumer that polls a CQ of several QPs leaves the processor to the sending goroutine,
// even where there is no other.
func TestPollSharesProcessor(t *testing.T) {
	b := newBurster(t)
	other, err := b.qp.pd.CreateQP(QPConfig{SendCQ: b.qp.sendCQ, RecvCQ: b.qp.recvCQ})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.post(burstFirst + 20)
	var wc [1]WC
	for range 1000 { // less than the time after which the scheduler takes the processor away
		b.qp.sendCQ.Poll(wc[:])
		if f, _ := b.sent(); f == burstFirst+20 {
			return
		}
	}
	t.Error("the burst was not sent")
}

// A short pause does not end a burst: the posts after it are queued like those before. A
// long one does, and so do several short ones.
func TestBurstGoesOn(t *testing.T) {
	const gap, pause, long = burstGap - 1, burstPause - 1, burstPause
	var qp QP
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
		got := qp.burst(step.after)
		for range step.posts {
			got = qp.burst(gap)
		}
		if got != step.burst {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// Lists that follow each other are a burst, too: the first few are sent one by one, and the next go with those after them, or as soon
// as they are worth a call.
func TestBurstOfLists(t *testing.T) {
	const list = 32
	b := newBurster(t)
	post := func(n int) {
		b.qp.mu.Lock()
		defer b.qp.mu.Unlock()
		b.qp.pushed = time.Time{}
		for range n {
			for range list {
				if err := b.qp.queueSend(&SendWR{Op: OpWrite, Unsignaled: true}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.qp.pushPostedUnlocking(list, 0, b.qp.pushed) // as soon as the write before was done
			b.qp.pushed = time.Now().Add(time.Hour)
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
