package memory

import "sync"

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
)

// A Region is registered memory. Its octets are reached from outside the
// consumer's program only through the methods here, each of which holds the
// region's lock for as long as it copies: once Revoke or an invalidation has
// returned, no packet changes or reads the buffer any more (RFC 5042,
// section 6.2.2).
//
// Accesses at the same time, of several streams, are not kept apart from each
// other: of octets that one writes while another reads them some are new and
// some old, as with any RNIC.
type Region struct {
	stag   uint32 // immutable
	base   uint64 // immutable: tagged offset of the first octet
	access Access // immutable
	pd     uint32 // immutable
	stream uint32 // immutable: the one stream that may use it; 0 is any of the PD

	mu    sync.RWMutex
	buf   []byte // nil once revoked
	valid bool
}

// STag returns the Steering Tag under which peers name the region.
func (r *Region) STag() uint32 { return r.stag }

// Base returns the tagged offset of the first octet.
func (r *Region) Base() uint64 { return r.base }

// PD returns the number of the Protection Domain that the region belongs to.
func (r *Region) PD() uint32 { return r.pd }

// Access returns the rights granted when the region was registered.
func (r *Region) Access() Access { return r.access }

// Valid reports whether the STag can be used: it was neither invalidated nor
// revoked.
func (r *Region) Valid() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.valid
}

// Local returns n octets at offset off of a region that the consumer named in
// its own work request on a stream of Protection Domain pd. A zero length is
// never judged (RDMA verbs 7, "zero length: no checks at all").
func (r *Region) Local(pd uint32, off, n int, write bool) ([]byte, Fault) {
	if n == 0 {
		return nil, None
	}
	if r == nil {
		return nil, InvalidSTag
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if f := r.checkLocal(pd, off, n, write); f != None {
		return nil, f
	}
	return r.buf[off : off+n : off+n], None
}

// LocalPlace copies p to offset off for the consumer's own operation: a
// received Send or the response to its own RDMA Read.
func (r *Region) LocalPlace(pd uint32, off int, p []byte) Fault {
	if len(p) == 0 {
		return None
	}
	if r == nil {
		return InvalidSTag
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if f := r.checkLocal(pd, off, len(p), true); f != None {
		return f
	}
	copy(r.buf[off:], p)
	return None
}

// checkLocal judges the owner's access of n octets at offset off. The caller
// holds r.mu.
func (r *Region) checkLocal(pd uint32, off, n int, write bool) Fault {
	switch {
	case !r.valid:
		return InvalidSTag
	case r.pd != pd:
		return Association
	case write && r.access&LocalWrite == 0:
		return AccessRights
	case off < 0 || n < 0 || off > len(r.buf) || n > len(r.buf)-off:
		return Bounds
	}
	return None
}

// LocalInvalidate makes the STag unusable on the consumer's own request.
func (r *Region) LocalInvalidate(pd uint32) Fault {
	if r == nil {
		return InvalidSTag
	}
	if r.pd != pd {
		return Association
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buf == nil {
		return InvalidSTag
	}
	r.valid = false
	return None
}

// check judges a peer's access of n octets, n > 0, at tagged offset to. The
// caller holds r.mu.
func (r *Region) check(d Domain, to uint64, n uint64, want Access) Fault {
	if !r.valid {
		return InvalidSTag
	}
	if f := r.associated(d); f != None {
		return f
	}
	if r.access&want == 0 {
		return AccessRights
	}
	// RFC 5041, section 7.1: "A 64-bit unsigned sum of the DDP Segment payload
	// length and the TO does not wrap." Judged before the bounds, as it has a
	// code of its own. [D40] [P25]
	if to+n < n {
		return Wrap
	}
	off := to - r.base
	if to < r.base || off > uint64(len(r.buf)) || n > uint64(len(r.buf))-off {
		return Bounds
	}
	return None
}

func (r *Region) associated(d Domain) Fault {
	if r.pd != d.PD || (r.stream != 0 && r.stream != d.Stream) {
		return Association
	}
	return None
}

func (r *Region) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.valid, r.buf = false, nil
}
