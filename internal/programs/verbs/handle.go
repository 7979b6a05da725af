//go:build linux && (amd64 || arm64)

package verbs

import (
	"sync"
	"sync/atomic"
)

// A Handle names an object to C, which can hold no Go pointer. Zero names none.
type Handle uint64

// kinds of objects stand in the upper half of a Handle, so that one of another kind is not taken for it.
const (
	kindContext Handle = (iota + 1) << 32
	kindPD
	kindMR
	kindCQ
	kindSRQ
	kindQP
	kindChannel
	kindCMChannel
	kindID
	kindWindow
	kindAH
	kindUD
)

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
	maxIndex  = 1<<24 - 1
)

// A table finds objects by number. Looking up takes no lock: it is done for each work request and each of its elements.
//
// A number is 24 bits of index and 8 that change with every use of the index, so that a number whose object is gone
// is not soon that of another. Index 0 is not used.
type table[T any] struct {
	kind   Handle
	chunks atomic.Pointer[[]*chunk[T]]

	mu   sync.Mutex
	next uint32   // the first index that was never used
	free []uint32 // numbers that were used last by indexes that are free, the oldest first
}

type chunk[T any] [chunkSize]atomic.Pointer[entry[T]]

type entry[T any] struct {
	number uint32
	value  *T
}

// find returns the object with a number, or nil.
func (t *table[T]) find(number uint32) *T {
	chunks := t.chunks.Load()
	if chunks == nil {
		return nil
	}
	index := number >> 8
	if int(index>>chunkBits) >= len(*chunks) {
		return nil
	}
	e := (*chunks)[index>>chunkBits][index%chunkSize].Load()
	if e == nil || e.number != number {
		return nil
	}
	return e.value
}

// get returns the object that a Handle of this kind names, or nil.
func (t *table[T]) get(h Handle) *T {
	if h>>32<<32 != t.kind {
		return nil
	}
	return t.find(uint32(h))
}

// add gives an object a number. It returns 0 if there is none left.
func (t *table[T]) add(v *T) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := t.draw()
	if number == 0 {
		return 0
	}
	t.slot(number).Store(&entry[T]{number, v})
	return t.kind | Handle(number)
}

// draw takes a free index and gives it its next number. Indexes rest as long as there are 64 others.
func (t *table[T]) draw() uint32 {
	if len(t.free) > 64 || t.next == maxIndex && len(t.free) > 0 {
		last := t.free[0]
		t.free = t.free[1:]
		return last&^0xff | (last+1)&0xff
	}
	if t.next == maxIndex {
		return 0
	}
	t.next++
	t.grow(t.next)
	return t.next << 8
}

func (t *table[T]) grow(index uint32) {
	var chunks []*chunk[T]
	if p := t.chunks.Load(); p != nil {
		chunks = *p
	}
	if int(index>>chunkBits) < len(chunks) {
		return
	}
	grown := append(chunks[:len(chunks):len(chunks)], new(chunk[T]))
	t.chunks.Store(&grown)
}

func (t *table[T]) slot(number uint32) *atomic.Pointer[entry[T]] {
	index := number >> 8
	return &(*t.chunks.Load())[index>>chunkBits][index%chunkSize]
}

// remove removes the object and returns it: to one caller only.
func (t *table[T]) remove(h Handle) *T {
	v := t.get(h)
	if v == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := t.slot(uint32(h))
	if e := slot.Load(); e == nil || e.number != uint32(h) {
		return nil
	}
	slot.Store(nil)
	t.free = append(t.free, uint32(h))
	return v
}
