package reclaim

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }

// A queue is a Source that has memory to give back for some of the times that it is asked.
type queue struct {
	r     *Reclaimer
	began time.Time

	mu    sync.Mutex // which Reclaim takes, and under which Add is called
	entry Entry
	left  int             // times that it has memory to give back
	asked []time.Duration // since it began
	then  func()          // is called by Reclaim, if it is set
}

func newQueue(r *Reclaimer, left int) *queue { return &queue{r: r, began: time.Now(), left: left} }

// use fills the queue.
func (q *queue) use(left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left = left
	q.entry.Add(q.r, q)
}

func (q *queue) Reclaim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, time.Since(q.began))
	q.left--
	if q.then != nil {
		q.then()
	}
	return q.entry.Keep(q.left > 0)
}

// want expects when the queue was asked.
func (q *queue) want(t *testing.T, what string, at ...time.Duration) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Equal(q.asked, at) {
		t.Errorf("%s: asked after %v, want %v", what, q.asked, at)
	}
}

// waiting returns how many queues are to be asked, and whether the timer runs.
func (r *Reclaimer) waiting() (n int, timer bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.due), r.due != nil
}

// wantWaiting expects so many queues, and a timer while there are some.
func (r *Reclaimer) wantWaiting(t *testing.T, want int, when string) {
	t.Helper()
	if n, timer := r.waiting(); n != want || timer != (want > 0) {
		t.Errorf("%s: %d queues to be asked, timer %t; want %d", when, n, timer, want)
	}
}

// TestAsksUntilThereIsNoMore: a queue that a burst has filled is asked each second until it has given everything back,
// and again after the next burst. There is no timer before that, nor after.
func TestAsksUntilThereIsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaimer
		q, other := newQueue(&r, 0), newQueue(&r, 0)
		r.wantWaiting(t, 0, "before")
		q.use(3)
		other.use(1)
		q.use(3) // as there is more in it
		r.wantWaiting(t, 2, "after the burst")
		time.Sleep(every + every/2) // of virtual time
		r.wantWaiting(t, 1, "with one that has given everything")
		time.Sleep(10 * every)
		r.wantWaiting(t, 0, "in the end")
		q.want(t, "the first", every, 2*every, 3*every)
		other.want(t, "the other", every)
		q.use(1)
		r.wantWaiting(t, 1, "after another burst")
		time.Sleep(10 * every)
		r.wantWaiting(t, 0, "after that")
		q.want(t, "the first again", every, 2*every, 3*every, 12*every+every/2)
	})
}

// TestForgets: a queue that has ended is not kept until the next time, and is not asked.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaimer
		q, other := newQueue(&r, 0), newQueue(&r, 0)
		q.use(5)
		other.use(2)
		r.Drop(q)
		r.Drop(newQueue(&r, 0)) // which it never had
		if n, _ := r.waiting(); n != 1 {
			t.Errorf("%d queues are kept", n)
		}
		time.Sleep(10 * every) // of virtual time
		q.want(t, "the one that has ended")
		other.want(t, "the other", every, 2*every)
		r.wantWaiting(t, 0, "in the end")
	})
}

// TestAddsMeanwhile: a queue that is filled while others are asked is asked the next time.
func TestAddsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaimer
		q, other := newQueue(&r, 0), newQueue(&r, 0)
		q.then = sync.OnceFunc(func() { other.use(1) })
		q.use(1)
		time.Sleep(10 * every) // of virtual time
		q.want(t, "the first", every)
		other.want(t, "the other", 2*every)
		r.wantWaiting(t, 0, "in the end")
	})
}

// TestTogether: queues are filled, asked and dropped at once.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaimer
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					q := newQueue(&r, 0)
					for i := range 100 {
						q.use(i % 3)
						time.Sleep(every / 10) // of virtual time: all go on at once, and each tenth time with the timer
					}
					q.use(0)
					r.Drop(q)
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * every)
		r.wantWaiting(t, 0, "in the end")
	})
}
