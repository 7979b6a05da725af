package usertcp

import (
	"container/heap"
	"sync"
	"time"
)

// A wire is one direction of a Pipe.
type wire struct {
	mu     sync.Mutex
	fates  fates
	way    underWay
	number uint64
	free   time.Time     // when the bandwidth is free for another packet
	wake   chan struct{} // has a value when the first packet under way is another, or the wire is closed
	closed bool
	spare  [][]byte // buffers to use again
	stats  PathStats
}

func newWire(p Path) *wire { return &wire{fates: newFates(p), wake: make(chan struct{}, 1)} }

// send puts a packet under way.
func (w *wire) send(packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Packets++
	it := w.fates.next()
	switch {
	case w.closed:
		return
	case it.lost:
		w.stats.Lost++
		return
	case w.fates.path.Queue > 0 && len(w.way) >= w.fates.path.Queue:
		w.stats.Overflowed++
		return
	}
	due := w.leaves(len(packet)).Add(w.fates.path.Delay)
	if it.late > 0 {
		w.stats.Late++
	}
	w.push(due.Add(it.late), packet)
	if it.twice {
		w.stats.Duplicated++
		w.push(due.Add(it.second), packet)
	}
}

// leaves returns when the last byte of a packet of n bytes has left.
func (w *wire) leaves(n int) time.Time {
	now := time.Now()
	if rate := w.fates.path.Rate; rate > 0 {
		if w.free.Before(now) {
			w.free = now
		}
		w.free = w.free.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
		return w.free
	}
	return now
}

func (w *wire) push(due time.Time, packet []byte) {
	var b []byte
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1][:0], w.spare[:n-1]
	}
	w.number++
	heap.Push(&w.way, carried{due, w.number, append(b, packet...)})
	if w.way[0].number == w.number {
		w.signal()
	}
}

func (w *wire) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.way, w.spare = true, nil, nil
	w.signal()
}

// run delivers what is due until the wire is closed.
func (w *wire) run(deliver func([]byte)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var due [][]byte
	for {
		wait, closed := time.Duration(0), false
		due, wait, closed = w.popDue(due[:0])
		if closed {
			return
		}
		for _, packet := range due {
			deliver(packet)
		}
		if len(due) == 0 {
			timer.Reset(wait)
			select {
			case <-w.wake:
			case <-timer.C:
			}
		}
	}
}

// spares is how many buffers a wire keeps.
const spares = 256

// popDue removes the packets that are due and appends them to due, or else returns for how long none is. The buffers of
// the packets in due can be used again.
func (w *wire) popDue(due [][]byte) (_ [][]byte, wait time.Duration, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range due[:cap(due)] {
		if b != nil && len(w.spare) < spares {
			w.spare = append(w.spare, b)
		}
	}
	clear(due[:cap(due)])
	for now := time.Now(); len(w.way) > 0 && !w.way[0].due.After(now); {
		due = append(due, heap.Pop(&w.way).(carried).packet)
	}
	if len(w.way) == 0 {
		return due, time.Hour, w.closed
	}
	return due, time.Until(w.way[0].due), w.closed
}

// carried is a packet under way.
type carried struct {
	due    time.Time
	number uint64 // of sending
	packet []byte
}

// underWay is a heap of packets, the first to arrive first.
type underWay []carried

func (u underWay) Len() int { return len(u) }

func (u underWay) Less(i, j int) bool {
	if !u[i].due.Equal(u[j].due) {
		return u[i].due.Before(u[j].due)
	}
	return u[i].number < u[j].number
}

func (u underWay) Swap(i, j int) { u[i], u[j] = u[j], u[i] }

// Push is heap.Interface's.
func (u *underWay) Push(x any) { *u = append(*u, x.(carried)) }

// Pop is heap.Interface's.
func (u *underWay) Pop() any {
	last := (*u)[len(*u)-1]
	(*u)[len(*u)-1] = carried{}
	*u = (*u)[:len(*u)-1]
	return last
}
