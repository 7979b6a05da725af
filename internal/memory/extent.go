package memory

import "slices"

// An extent is memory as it was registered: in one piece, or in several that follow each other
// in tagged offsets.
//
// Accesses at the same time, of any number of streams, exclude each other where
// they overlap: see stripes.
type extent struct {
	grant         // of the region, over all of it
	term  uint32  // which of the region's registrations it is: settled with the grant
	locks stripes // immutable
	// vanishes tells that the memory is not the Go runtime's, and may be gone: immutable.
	vanishes bool
	// guarded by locks; nothing once revoked
	buf   []byte   // the only piece
	parts [][]byte // or several
	ends  []int    // of those: where each ends
}

// newExtent has the memory of a region, in one piece or several.
func newExtent(x *extent, pieces ...[]byte) {
	x.in = x
	x.setPieces(pieces)
	x.locks = newStripes(x.size)
}

// setPieces has the extent, which nobody holds and which has no memory, be pieces of memory.
func (x *extent) setPieces(pieces [][]byte) {
	x.buf, x.size = []byte{}, 0
	for _, p := range pieces {
		x.append(p[:len(p):len(p)])
	}
}

func (x *extent) append(p []byte) {
	switch {
	case len(p) == 0:
		return
	case x.size == 0:
		x.buf = p
	case len(x.parts) == 0:
		x.parts, x.ends, x.buf = append(x.parts, x.buf), append(x.ends, x.size), nil
		fallthrough
	default:
		x.parts, x.ends = append(x.parts, p), append(x.ends, x.size+len(p))
	}
	x.size += len(p)
}

// piece returns the bytes from offset off on that follow each other in memory, at most n. The
// caller holds a lock of them.
func (x *extent) piece(off, n int) []byte {
	if len(x.parts) == 0 {
		return x.buf[off : off+n]
	}
	return x.part(off, n)
}

// part is piece where there are several.
func (x *extent) part(off, n int) []byte {
	i, _ := slices.BinarySearch(x.ends, off+1) // of the piece that ends after it
	b := x.parts[i]
	b = b[len(b)-(x.ends[i]-off):]
	return b[:min(n, len(b))]
}

// holds reports whether n bytes at offset off are all in the memory.
func (x *extent) holds(off, n int) bool {
	return off >= 0 && n >= 0 && off <= x.size && n <= x.size-off
}

// give has t take n bytes from offset off on. The caller holds a lock of them.
func (x *extent) give(t Taker, off, n int) {
	for n > 0 {
		b := x.piece(off, n)
		t.Take(b)
		off, n = off+len(b), n-len(b)
	}
}

// forget drops the memory, for good.
func (x *extent) forget() { x.drop(revoked) }

// drop drops the memory, as the extent goes on to a state.
func (x *extent) drop(state uint32) {
	x.locks.lock(0, x.size)
	defer x.locks.unlock(0, x.size)
	clear(x.parts)
	x.buf, x.parts, x.ends = nil, x.parts[:0], x.ends[:0]
	if cap(x.parts) > KeptPieces {
		x.parts, x.ends = nil, nil
	}
	x.state.Store(state)
}

// KeptPieces is for how many pieces of memory room is kept when they are not registered any more.
const KeptPieces = 16
