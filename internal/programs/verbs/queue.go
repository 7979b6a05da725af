//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// A Queue has the events that a program fetches. The descriptor is an eventfd, which belongs to the
// program's side; it is readable as long as an event is in the queue, so that poll and epoll are level-triggered
// as with the kernel's. Who waits for an event without poll is woken by a function.
type Queue[T any] struct {
	fd   int
	wake func() // nil if nobody waits so

	mu     sync.Mutex
	events []T
	closed bool
}

func newQueue[T any](fd int, wake func()) *Queue[T] { return &Queue[T]{fd: fd, wake: wake} }

// push appends events. It reports false if nobody can fetch them any more.
func (q *Queue[T]) push(events ...T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(events) == 0 || q.closed {
		return !q.closed
	}
	if len(q.events) == 0 {
		q.signal()
	}
	q.events = append(q.events, events...)
	if q.wake != nil { // with the lock held: not any more when the queue is closed
		q.wake()
	}
	return true
}

// has reports whether an event is in the queue.
func (q *Queue[T]) has(chosen func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.events, chosen)
}

// next takes the oldest event.
func (q *Queue[T]) next() (event T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return event, false
	}
	event = q.events[0]
	q.events = slices.Delete(q.events, 0, 1)
	if len(q.events) == 0 {
		q.clear()
	}
	return event, true
}

// remove takes those events out that are chosen, and returns them in order.
func (q *Queue[T]) remove(chosen func(T) bool) (removed []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	had := len(q.events)
	q.events = slices.DeleteFunc(q.events, func(e T) bool {
		out := chosen(e)
		if out {
			removed = append(removed, e)
		}
		return out
	})
	if had > 0 && len(q.events) == 0 {
		q.clear()
	}
	return removed
}

// close ends the queue, which takes nothing more, and returns what was in it: the descriptor is about to be closed, and
// its number may be another's then.
func (q *Queue[T]) close() (left []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) > 0 {
		q.clear()
	}
	left, q.events, q.closed = q.events, nil, true
	return left
}

// signal makes the descriptor readable, and clear makes it so no longer. The counter is 0 before the one and more
// before the other, unless the program itself has read its descriptor or written to it. So each looks first: the lock
// is held, and eventfds block as a rule.
func (q *Queue[T]) signal() {
	if q.readable() {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = syscall.Write(q.fd, one[:])
}

func (q *Queue[T]) clear() {
	if !q.readable() {
		return
	}
	var count [8]byte
	_, _ = syscall.Read(q.fd, count[:])
}

// readable reports whether the descriptor is.
func (q *Queue[T]) readable() bool {
	const pollIn = 1
	ask := struct {
		fd              int32
		events, revents int16
	}{fd: int32(q.fd), events: pollIn}
	var now syscall.Timespec
	n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&ask)), 1,
		uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return n == 1 && ask.revents&pollIn != 0
}
