package capture

import "hash/maphash"

// perConnection is how many connections are remembered to be forgotten, for each that may be known.
const perConnection = 16

// A forgotten is the connections that had to be forgotten before they were over, by hashes of their ends. What comes of
// them later is skipped: in its place another would have to be forgotten, and soon all of them in turn.
type forgotten struct {
	seed  maphash.Seed
	known map[uint64]struct{}
	most  int // when there are so many, all are dropped
}

func newForgotten(connections int) forgotten {
	return forgotten{maphash.MakeSeed(), map[uint64]struct{}{}, perConnection * connections}
}

func (f *forgotten) add(ends tuple) {
	if len(f.known) >= f.most {
		clear(f.known)
	}
	f.known[maphash.Comparable(f.seed, ends)] = struct{}{}
}

// has reports whether a packet is of one of them. A SYN of the end that opens one begins another.
func (f *forgotten) has(h *tcpHeader) bool {
	if len(f.known) == 0 {
		return false
	}
	hash := maphash.Comparable(f.seed, h.tuple)
	if _, known := f.known[hash]; !known {
		return false
	}
	if h.flags.Has(SYN) && !h.flags.Has(ACK) {
		delete(f.known, hash)
		return false
	}
	return true
}
