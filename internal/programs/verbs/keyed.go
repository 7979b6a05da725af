//go:build linux && (amd64 || arm64)

package verbs

import (
	"sync"

	"github.com/goiwarp/iwarp/internal/stags"
)

// keyed is a table of what has an STag: its Handles have that as their number. Looking up takes no lock, as in table.
// Package memory rests the index of an STag that has ended, so that its number is not soon that of another.
type keyed[T any] struct {
	kind Handle

	mu  sync.Mutex // against others who change what there is
	all stags.Table[T]
}

// find returns the object with an STag, or nil.
func (k *keyed[T]) find(stag uint32) *T { return k.all.Get(stag) }

// get returns the object that a Handle of this kind names, or nil.
func (k *keyed[T]) get(h Handle) *T {
	if h>>32<<32 != k.kind {
		return nil
	}
	return k.find(uint32(h))
}

func (k *keyed[T]) add(stag uint32, v *T) Handle {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.Put(stag, v)
	return k.kind | Handle(stag)
}

// remove removes the object and returns it: to one caller only.
func (k *keyed[T]) remove(h Handle) *T {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.get(h)
	if v != nil {
		k.all.Delete(uint32(h))
	}
	return v
}

// replace puts another object in the place of one, under the same Handle. It reports whether that was there.
func (k *keyed[T]) replace(h Handle, by *T) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.get(h) == nil {
		return false
	}
	k.all.Put(uint32(h), by)
	return true
}
