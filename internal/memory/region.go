package memory

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// Access is a set of rights. Local read needs none.
type Access uint8

const (
	// LocalWrite lets the owner's own operations write the region: receives
	// and the sinks of RDMA Reads.
	LocalWrite Access = 1 << iota
	// RemoteWrite lets the peer's RDMA Writes place octets here.
	RemoteWrite
	// RemoteRead lets the peer's RDMA Reads fetch octets from here.
	RemoteRead
	// RemoteInvalidate lets a peer invalidate the STag, as long as it is not
	// shared by several streams. The peer of the stream that the region is bound
	// to does not need this right.
	RemoteInvalidate
	// RemoteAtomic lets the peer's Atomic Operations change words of 8 octets here.
	RemoteAtomic

	allAccess = LocalWrite | RemoteWrite | RemoteRead | RemoteInvalidate | RemoteAtomic
)

// A Region is registered memory. Its octets are reached from outside the
// consumer's program only through this package, which holds the region's locks
// for as long as it copies: once Revoke or an invalidation has returned, no packet
// changes or reads the buffer any more (RFC 5042, section 6.2.2).
//
// Accesses at the same time, of any number of streams, exclude each other where
// they overlap: see stripes.
type Region struct {
	table  *Table // immutable
	stag   uint32 // immutable
	base   uint64 // immutable: tagged offset of the first octet
	size   int    // immutable
	access Access // immutable
	pd     uint32 // immutable
	stream uint32 // immutable: the one stream that may use it; 0 is any of the PD

	locks stripes
	buf   []byte // guarded by locks; nil once revoked
	// state changes with all locks held. Who looks at octets as well holds the locks of
	// these; others, such as the check of a request that is posted, do not wait
	// for a copy that is under way.
	state atomic.Uint32
}

// The states of a region, in the order in which it goes through them.
const (
	usable      = iota
	invalidated // its STag
	revoked
)

// STag returns the Steering Tag under which peers name the region.
func (r *Region) STag() uint32 { return r.stag }

// Base returns the tagged offset of the first octet.
func (r *Region) Base() uint64 { return r.base }

// Access returns the rights granted when the region was registered.
func (r *Region) Access() Access { return r.access }

// Valid reports whether the STag can be used: it was neither invalidated nor
// revoked.
func (r *Region) Valid() bool { return r.state.Load() == usable }

// ReadAt copies n = len(dst) octets from offset off on. They lie within the
// region, or it panics; it reports false, and copies nothing, if the region has
// been revoked.
func (r *Region) ReadAt(dst []byte, off int) bool {
	if len(dst) == 0 {
		return r.state.Load() != revoked
	}
	r.locks.rlock(off, len(dst))
	defer r.locks.runlock(off, len(dst))
	if r.buf == nil {
		return false
	}
	copy(dst, r.buf[off:off+len(dst)])
	return true
}

// WriteAt copies src to offset off, as ReadAt does the other way.
func (r *Region) WriteAt(src []byte, off int) bool {
	if len(src) == 0 {
		return r.state.Load() != revoked
	}
	r.locks.lock(off, len(src))
	defer r.locks.unlock(off, len(src))
	if r.buf == nil {
		return false
	}
	place(r.buf[off:off+len(src)], layout.Plain(src))
	return true
}

// Update calls f with the region's octets while nobody else reaches any of them.
// It reports false, without a call, if the region has been revoked.
func (r *Region) Update(f func([]byte)) bool {
	r.locks.lock(0, r.size)
	defer r.locks.unlock(0, r.size)
	if r.buf == nil {
		return false
	}
	f(r.buf)
	return true
}

// Detach puts a copy in place of the buffer, which nobody reaches through the region any more. It
// reports false if the region has been revoked.
func (r *Region) Detach() bool {
	r.locks.lock(0, r.size)
	defer r.locks.unlock(0, r.size)
	if r.buf == nil {
		return false
	}
	r.buf = append(make([]byte, 0, len(r.buf)), r.buf...)
	return true
}

// checkLocal judges the owner's access of n octets at offset off. The caller
// holds a lock if it reaches them then.
func (r *Region) checkLocal(d Domain, off, n int, write bool) Fault {
	state := r.state.Load()
	switch {
	case r.table != d.Table || r.pd != d.PD:
		return OtherDomain
	case state == revoked:
		return InvalidSTag
	case state == invalidated:
		return Invalidated
	case write && r.access&LocalWrite == 0:
		return NoLocalWrite
	case !r.holds(off, n):
		return Bounds
	}
	return None
}

// check judges a peer's access of n octets, n > 0, at tagged offset to. The
// caller holds a lock if it reaches them then.
func (r *Region) check(d Domain, to uint64, n uint64, want Access) Fault {
	switch r.state.Load() {
	case revoked:
		return InvalidSTag
	case invalidated:
		return Invalidated
	}
	if f := r.associated(d); f != None {
		return f
	}
	if r.access&want == 0 {
		return missing(want)
	}
	// The rule of Writes is that of Reads too, under codes of their own. [D40] [P25]
	switch ddp.CheckBounds(to, n, r.base, uint64(r.size)) {
	case 0:
		return None
	case ddp.CodeTOWrap:
		return Wrap
	}
	return Bounds
}

// holds reports whether n octets at offset off are all in the region.
func (r *Region) holds(off, n int) bool {
	return off >= 0 && n >= 0 && off <= r.size && n <= r.size-off
}

// missing is the fault of a region without a right.
func missing(want Access) Fault {
	switch want {
	case RemoteWrite:
		return NoRemoteWrite
	case RemoteAtomic:
		return NoRemoteAtomic
	}
	return NoRemoteRead
}

func (r *Region) associated(d Domain) Fault {
	switch {
	case r.table != d.Table || r.pd != d.PD:
		return OtherDomain
	case r.stream != 0 && r.stream != d.Stream:
		return OtherStream
	}
	return None
}

func (r *Region) revoke() {
	r.locks.lock(0, r.size)
	defer r.locks.unlock(0, r.size)
	r.buf = nil
	r.state.Store(revoked)
}
