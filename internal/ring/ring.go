// Package ring is a first-in first-out queue whose memory follows what is in it: a queue
// that may become deep costs nothing while it is not.
package ring

import "math"

// A Ring holds entries in the order in which they were added. Each has a position: the
// first that was ever added is at 0, and the positions count up for ever. Its memory
// grows by doubling, up to the limit; [Ring.Trim] gives back what was not used lately.
//
// The zero value has a limit of 0.
type Ring[T any] struct {
	buf   []T
	head  uint64 // position of the oldest
	tail  uint64 // position after the youngest
	first int32  // index in buf of the oldest
	limit int32
	peak  int32 // the most entries since the last Trim
}

// New returns an empty Ring for at most limit entries. It has no memory yet.
func New[T any](limit int) Ring[T] { return Ring[T]{limit: entries(limit)} }

// entries returns how many entries a limit is: a Ring has fewer than 2^31.
func entries(limit int) int32 { return int32(min(limit, math.MaxInt32)) }

// Limit returns how many entries there can be at most.
func (r *Ring[T]) Limit() int { return int(r.limit) }

// SetLimit changes how many entries there can be at most. Entries beyond a lower limit stay.
func (r *Ring[T]) SetLimit(limit int) { r.limit = entries(limit) }

// Len returns how many entries there are.
func (r *Ring[T]) Len() int { return int(r.tail - r.head) }

// Cap returns how many entries there is memory for now.
func (r *Ring[T]) Cap() int { return len(r.buf) }

// Full reports whether there is no room for another.
func (r *Ring[T]) Full() bool { return r.Len() >= int(r.limit) }

// Head returns the position of the oldest entry, and Tail that of the next to be added.
// They are the same if there is none.
func (r *Ring[T]) Head() uint64 { return r.head }

// Tail is described with Head.
func (r *Ring[T]) Tail() uint64 { return r.tail }

// At returns the entry at a position from Head on and before Tail. The pointer is valid
// until the next Add or Trim.
func (r *Ring[T]) At(pos uint64) *T {
	i := int(r.first) + int(pos-r.head)
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	return &r.buf[i]
}

// Front returns the oldest entry; there must be one. See At.
func (r *Ring[T]) Front() *T { return &r.buf[r.first] }

// Add makes an entry the youngest, for the caller to fill, and returns it; the Ring must
// not be full. It is a zero value, or what [Ring.Drop] has left there.
func (r *Ring[T]) Add() *T {
	n := r.Len()
	if n == len(r.buf) {
		r.resize(min(int(r.limit), max(1, 2*n)))
	}
	r.tail++
	r.peak = max(r.peak, int32(n+1))
	return r.At(r.tail - 1)
}

// Pop takes the oldest entry out and returns it; there must be one.
func (r *Ring[T]) Pop() (v T) {
	v, *r.Front() = *r.Front(), v
	r.Drop()
	return v
}

// Take is Pop for entries that are large: it moves the oldest to dst.
func (r *Ring[T]) Take(dst *T) {
	var none T
	front := r.Front()
	*dst = *front
	*front = none
	r.Drop()
}

// Drop is Pop for a caller that has cleared the entry itself, as far as it wants to: what it
// leaves there is what a later Add may return.
func (r *Ring[T]) Drop() {
	r.head++
	if r.first++; int(r.first) == len(r.buf) {
		r.first = 0
	}
}

// Remove takes out the entry at a position. The younger ones move up by one.
func (r *Ring[T]) Remove(pos uint64) {
	for ; pos+1 != r.tail; pos++ {
		*r.At(pos) = *r.At(pos + 1)
	}
	var none T
	*r.At(pos) = none
	r.tail--
}

// Slack reports whether there is much more memory than the entries take, so that a Trim
// after some time may be worth it.
func (r *Ring[T]) Slack() bool { return len(r.buf) > 0 && r.Len() <= len(r.buf)/4 }

// Trim gives memory back that was not needed since the Trim before. If the time between two
// calls is long beside that in which the Ring fills and empties, Trim does not take away what
// is wanted again at once.
func (r *Ring[T]) Trim() {
	n := len(r.buf)
	for n > 0 && n/2 >= int(r.peak) {
		n /= 2
	}
	r.peak = int32(r.Len())
	if n != len(r.buf) {
		r.resize(n)
	}
}

// resize moves the entries to a memory for n of them.
func (r *Ring[T]) resize(n int) {
	buf := make([]T, n)
	k := copy(buf, r.buf[r.first:min(int(r.first)+r.Len(), len(r.buf))])
	copy(buf[k:r.Len()], r.buf)
	r.buf, r.first = buf, 0
}
