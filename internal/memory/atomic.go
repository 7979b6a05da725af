package memory

import (
	"sync/atomic"
	"unsafe"
)

// atomicLen is how many bytes an Atomic Operation works on. RFC 7306, section 5: "a 64-bit
// memory operation".
const atomicLen = 8

// Atomic replaces the word of 8 bytes at tagged offset to by what change makes of it, for the
// peer's Atomic Operation, and returns what it was. change may be called several times.
//
// RFC 7306, section 5.3: atomicity "MUST be assured in the context of concurrent atomic
// accesses by other RDMAP Streams on the same RNIC". The word is replaced by the processor's
// own compare and swap, so that it holds between all regions that have the word, and for
// whoever uses sync/atomic on it too.
//
// The word is in the byte order of the machine. RFC 7306, section 5.1.1: "The FetchAdd
// operation is performed in the endian format of the target memory."
func (d Domain) Atomic(stag uint32, to uint64, change func(old uint64) uint64) (old uint64, f Fault) {
	for {
		g := d.Table.lookup(stag)
		old, f := d.swap(g, to, change)
		if d.settled(g, stag, f) {
			return old, f
		}
	}
}

func (d Domain) swap(g *grant, to uint64, change func(old uint64) uint64) (old uint64, f Fault) {
	if f := g.named(); f != None {
		return 0, f
	}
	off, n := g.find(to, atomicLen)
	g.in.locks.lock(off, n)
	defer g.in.locks.unlock(off, n)
	if f := g.checkAtomic(d, to); f != None {
		return 0, f
	}
	return g.in.swap(off, change)
}

func swap(word *uint64, change func(old uint64) uint64) (old uint64) {
	for {
		old = atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, change(old)) {
			return old
		}
	}
}

// CheckAtomic judges the target of a peer's Atomic Operation.
func (d Domain) CheckAtomic(stag uint32, to uint64) Fault {
	for {
		g := d.Table.lookup(stag)
		f := d.judgeAtomic(g, to)
		if d.settled(g, stag, f) {
			return f
		}
	}
}

func (d Domain) judgeAtomic(g *grant, to uint64) Fault {
	if f := g.named(); f != None {
		return f
	}
	off, n := g.find(to, atomicLen)
	g.in.locks.rlock(off, n)
	defer g.in.locks.runlock(off, n)
	return g.checkAtomic(d, to)
}

// checkAtomic judges a peer's Atomic Operation; the caller holds a lock of its bytes.
//
// RFC 7306, section 8.2: the RDMAP layer "MUST validate that the Remote Peer's Tagged ULP
// Buffer address references a ULP Buffer address that is 64-bit aligned". It is the address
// that counts, and not the tagged offset, which "MAY start at an arbitrary offset" (section
// 5.2.1). Bytes of two pieces of memory have no such address. [A14]
func (g *grant) checkAtomic(d Domain, to uint64) Fault {
	if f := g.check(d, to, atomicLen, RemoteAtomic); f != None {
		return f
	}
	_, f := g.in.word(g.at + int(to-g.base))
	return f
}

// word returns the word at offset off. The caller holds a lock of its bytes.
func (x *extent) word(off int) (*uint64, Fault) {
	b := x.piece(off, atomicLen)
	at := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < atomicLen || uintptr(at)%atomicLen != 0 {
		return nil, Unaligned
	}
	return (*uint64)(at), None
}

// Load64 returns the word of 8 bytes at offset off, for the program itself. The lock keeps out what peers write by
// other means than Atomic Operations.
func (r *Region) Load64(off int) (word uint64, f Fault) {
	x := r.held()
	defer x.release()
	if !x.holds(off, atomicLen) {
		return 0, r.unheld(x)
	}
	x.locks.rlock(off, atomicLen)
	defer x.locks.runlock(off, atomicLen)
	if f := r.kept(x); f != None {
		return 0, f
	}
	return x.load(off)
}

// Change64 replaces the word of 8 bytes at offset off by what change makes of it, as Domain.Atomic does for a peer, and
// returns what it was.
func (r *Region) Change64(off int, change func(old uint64) uint64) (old uint64, f Fault) {
	x := r.held()
	defer x.release()
	if !x.holds(off, atomicLen) {
		return 0, r.unheld(x)
	}
	x.locks.lock(off, atomicLen)
	defer x.locks.unlock(off, atomicLen)
	if f := r.kept(x); f != None {
		return 0, f
	}
	return x.swap(off, change)
}

// unheld is the fault of an access that leaves the extent.
func (r *Region) unheld(x *extent) Fault {
	if f := r.kept(x); f != None {
		return f
	}
	return Bounds
}
