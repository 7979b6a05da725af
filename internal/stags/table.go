// Package stags finds what Steering Tags name, without a lock and without a search.
package stags

import "sync/atomic"

// KeyBits is how many of the lowest bits of an STag are its key. The others are its index.
const KeyBits = 8

// least is how many places a Table has at first: a power of two.
const least = 64

// A Table finds values by STag. The place of a value is the lowest bits of the STag's index, so that no two values may
// agree in these. A Table that has to take two such values grows until they differ. Whoever may choose among STags asks
// Taken first: then a Table has at most four times as many places as it has had values.
//
// The zero value is an empty Table. Any goroutine may call Get at any time. The other methods need a lock of the caller.
type Table[T any] struct {
	places atomic.Pointer[places[T]]
	n      int
}

type places[T any] []atomic.Pointer[entry[T]]

type entry[T any] struct {
	stag  uint32
	value *T
}

// of returns the place of an STag.
func (p places[T]) of(stag uint32) *atomic.Pointer[entry[T]] {
	return &p[stag>>KeyBits&uint32(len(p)-1)]
}

// place returns the place of an STag, or nil in a Table that never had a value.
func (t *Table[T]) place(stag uint32) *atomic.Pointer[entry[T]] {
	p := t.places.Load()
	if p == nil {
		return nil
	}
	return p.of(stag)
}

// Get returns the value with an STag, of which the key counts too, or nil.
func (t *Table[T]) Get(stag uint32) *T {
	place := t.place(stag)
	if place == nil {
		return nil
	}
	e := place.Load()
	if e == nil || e.stag != stag {
		return nil
	}
	return e.value
}

// Len returns how many values there are.
func (t *Table[T]) Len() int { return t.n }

// Taken reports whether the place of an STag has a value, of this STag or of another.
func (t *Table[T]) Taken(stag uint32) bool {
	place := t.place(stag)
	return place != nil && place.Load() != nil
}

// Put gives an STag a value, in place of an earlier one if it has any. No two STags of a Table may have the same index.
func (t *Table[T]) Put(stag uint32, value *T) {
	if t.Get(stag) == nil {
		for t.places.Load() == nil || 2*t.n >= len(*t.places.Load()) || t.Taken(stag) {
			t.grow()
		}
		t.n++
	}
	t.place(stag).Store(&entry[T]{stag, value})
}

// Delete takes the value of an STag away, if it has any.
func (t *Table[T]) Delete(stag uint32) {
	if t.Get(stag) != nil {
		t.place(stag).Store(nil)
		t.n--
	}
}

// grow doubles the places. Values whose places differed have places that differ.
func (t *Table[T]) grow() {
	grown := make(places[T], least)
	if p := t.places.Load(); p != nil {
		grown = make(places[T], 2*len(*p))
		for i := range *p {
			if e := (*p)[i].Load(); e != nil {
				grown.of(e.stag).Store(e)
			}
		}
	}
	t.places.Store(&grown)
}
