package memory

import "sync"

// A large region has a lock for each part of it, so that peers that use different
// parts do not wait for each other. There are at most maxStripes parts, and none is
// smaller than 64 KiB, which is as much as a segment carries: most accesses take
// one lock, and segments never more than two.
const (
	maxStripes     = 16
	minStripeShift = 16
)

// stripes are the locks of a region, one for each 2^shift bytes. Whoever reads
// bytes holds those of their parts shared, whoever changes bytes holds them
// exclusively, and what concerns the region as a whole changes with all of them
// held. They are taken in ascending order.
type stripes struct {
	shift uint
	mu    []stripe
}

// A stripe has a cache line to itself. Two regions are often used by two processors: those of a connection whose ends
// are in one program.
type stripe struct {
	sync.RWMutex
	_ [40]byte
}

func newStripes(size int) stripes {
	s := stripes{shift: minStripeShift}
	for max(size-1, 0)>>s.shift >= maxStripes {
		s.shift++
	}
	s.mu = make([]stripe, max(size-1, 0)>>s.shift+1)
	return s
}

// of returns the locks of n bytes at offset off, at least one.
func (s *stripes) of(off, n int) []stripe {
	return s.mu[off>>s.shift : max(off, off+n-1)>>s.shift+1]
}

// reach returns how far the lock of the byte before an offset reaches, up to an offset at most.
func (s *stripes) reach(off, most int) int {
	last := (off - 1) >> s.shift
	if last == len(s.mu)-1 { // whose bytes end with the region; the next multiple may be more than an int has
		return most
	}
	return min((last+1)<<s.shift, most)
}

func (s *stripes) lock(off, n int) {
	mu := s.of(off, n)
	for i := range mu {
		mu[i].Lock()
	}
}

func (s *stripes) unlock(off, n int) {
	mu := s.of(off, n)
	for i := range mu {
		mu[i].Unlock()
	}
}

func (s *stripes) rlock(off, n int) {
	mu := s.of(off, n)
	for i := range mu {
		mu[i].RLock()
	}
}

func (s *stripes) runlock(off, n int) {
	mu := s.of(off, n)
	for i := range mu {
		mu[i].RUnlock()
	}
}
