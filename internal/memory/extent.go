package memory

import "slices"

// An extent is memory as it was registered: in one piece, or in several that follow each other
// in tagged offsets.
//
// Accesses at the same time, of any number of streams, exclude each other where
// they overlap: see stripes.
type extent struct {
	grant        // of the region, over all of it
	term  uint32 // immutable: which of the region's registrations it is
	locks stripes
	// vanishes tells that the memory is not the Go runtime's, and may be gone: immutable.
	vanishes bool
	// guarded by locks; nil once revoked
	buf   []byte   // the only piece
	parts [][]byte // or several
	ends  []int    // of those: where each ends
}

// newExtent has the memory of a region, in one piece or several.
func newExtent(x *extent, pieces ...[]byte) {
	x.buf = []byte{}
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		x.size += len(p)
		x.parts, x.ends = append(x.parts, p[:len(p):len(p)]), append(x.ends, x.size)
	}
	if len(x.parts) == 1 {
		x.buf, x.parts, x.ends = x.parts[0], nil, nil
	}
	x.in, x.locks = x, newStripes(x.size)
}

// piece returns the octets from offset off on that follow each other in memory, at most n. The
// caller holds a lock of them.
func (x *extent) piece(off, n int) []byte {
	if x.parts == nil {
		return x.buf[off : off+n]
	}
	i, _ := slices.BinarySearch(x.ends, off+1) // of the piece that ends after it
	b := x.parts[i]
	b = b[len(b)-(x.ends[i]-off):]
	return b[:min(n, len(b))]
}

// holds reports whether n octets at offset off are all in the memory.
func (x *extent) holds(off, n int) bool {
	return off >= 0 && n >= 0 && off <= x.size && n <= x.size-off
}

// give has t take n octets from offset off on. The caller holds a lock of them.
func (x *extent) give(t Taker, off, n int) {
	for n > 0 {
		b := x.piece(off, n)
		t.Take(b)
		off, n = off+len(b), n-len(b)
	}
}

// forget drops the memory, for good.
func (x *extent) forget() {
	x.locks.lock(0, x.size)
	defer x.locks.unlock(0, x.size)
	x.buf, x.parts, x.ends = nil, nil, nil
	x.state.Store(revoked)
}
