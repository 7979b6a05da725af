// Package reclaim gives back memory of queues that a burst has made large, when the burst is over.
package reclaim

import (
	"maps"
	"sync"
	"time"
)

// every is the time after which memory that a burst took is given back if it was not wanted meanwhile; at the latest
// after twice that.
const every = time.Second

// A Reclaimer gives back the memory of queues that have become empty. It knows only those that have such memory, and
// has no timer while there are none. The zero Reclaimer knows none.
type Reclaimer struct {
	mu    sync.Mutex
	due   map[Source]struct{} // nil: the timer does not run either
	spare map[Source]struct{} // is empty, and takes the place of due while that is gone through
	timer *time.Timer
}

// A Source is something whose memory grows with its use.
type Source interface {
	// Reclaim gives back what was not used since the call before. It reports whether there may be more to give back
	// later.
	Reclaim() bool
}

// Add has x asked until it says that there is no more to give. It may be called under the lock of x.
func (r *Reclaimer) Add(x Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = make(map[Source]struct{})
		r.start()
	}
	r.due[x] = struct{}{}
}

// Drop forgets x, which has ended.
func (r *Reclaimer) Drop(x Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, x)
}

// start has the timer run. The caller holds r.mu.
func (r *Reclaimer) start() {
	if r.timer == nil {
		r.timer = time.AfterFunc(every, r.run)
		return
	}
	r.timer.Reset(every)
}

func (r *Reclaimer) run() {
	r.mu.Lock()
	if r.spare == nil {
		r.spare = make(map[Source]struct{})
	}
	due := r.due
	r.due, r.spare = r.spare, nil // what is added meanwhile needs no timer
	r.mu.Unlock()
	maps.DeleteFunc(due, func(x Source, _ struct{}) bool { return !x.Reclaim() })
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.due, due)
	if len(r.due) == 0 {
		r.due = nil
		return
	}
	clear(due)
	r.spare = due
	r.start()
}

// An Entry tells whether a Reclaimer has a Source, so that one asks it once. The Source's lock guards it.
type Entry struct{ due bool }

// Add has x asked, unless it is already. The caller holds the lock of x.
func (e *Entry) Add(r *Reclaimer, x Source) {
	if !e.due {
		e.due = true
		r.Add(x)
	}
}

// Keep notes whether x is asked again, which is what Reclaim returns. The caller holds the lock of x.
func (e *Entry) Keep(again bool) bool {
	e.due = again
	return again
}
