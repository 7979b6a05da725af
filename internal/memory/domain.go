package memory

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// A Domain is the table as one stream sees it: the regions of its Protection
// Domain, less those bound to another stream (RFC 5041, section 8.2: both
// associations are to be supported).
type Domain struct {
	Table  *Table
	PD     uint32
	Stream uint32 // never 0; another one for each connection of a QP
}

// find returns the region named stag, and where in it an access of n octets at
// tagged offset to begins: at 0 if it leaves the region, which check finds out.
func (d Domain) find(stag uint32, to, n uint64) (r *Region, off, size int) {
	r = d.Table.lookup(stag)
	if r == nil {
		return nil, 0, 0
	}
	if ddp.CheckBounds(to, n, r.base, uint64(r.size)) != 0 {
		return r, 0, 0
	}
	return r, int(to - r.base), int(n)
}

// Place copies p to tagged offset to of the region named stag, as the payload
// of the peer's RDMA Write. No payload: nothing is checked (RFC 5041,
// section 5.2).
func (d Domain) Place(stag uint32, to uint64, p layout.Content) Fault {
	if p.Len() == 0 {
		return None
	}
	r, off, n := d.find(stag, to, uint64(p.Len()))
	if r == nil {
		return InvalidSTag
	}
	r.locks.lock(off, n)
	defer r.locks.unlock(off, n)
	f := r.check(d, to, uint64(p.Len()), RemoteWrite)
	if f == None {
		place(r.buf[off:off+n], p)
	}
	return f
}

// CheckWrite judges the range of a peer's RDMA Write whose payload is in place already:
// it came ahead of others, and meanwhile the STag may have been invalidated.
func (d Domain) CheckWrite(stag uint32, to, n uint64) Fault {
	return d.checkRange(stag, to, n, RemoteWrite)
}

// CheckRead judges the whole range of a peer's RDMA Read Request. Size 0 is
// never judged (RFC 5040, section 5.2.1).
func (d Domain) CheckRead(stag uint32, to uint64, size uint32) Fault {
	return d.checkRange(stag, to, uint64(size), RemoteRead)
}

func (d Domain) checkRange(stag uint32, to, n uint64, want Access) Fault {
	if n == 0 {
		return None
	}
	r := d.Table.lookup(stag)
	if r == nil {
		return InvalidSTag
	}
	return r.check(d, to, n, want)
}

// A Taker takes octets of registered memory in.
type Taker interface {
	// Take copies the next octets that were asked for. They are locked until it returns,
	// against all that comes from outside the consumer's program, and are not to be
	// referred to afterwards. The program itself may change them at any time, so that what
	// is made of them must be made of the copy.
	Take(p []byte)
}

// Load has t take n octets from tagged offset to on, for the response to the
// peer's RDMA Read. It checks again: the region may have been revoked since
// the request was accepted.
func (d Domain) Load(t Taker, n int, stag uint32, to uint64) Fault {
	if n == 0 {
		return None
	}
	r, off, size := d.find(stag, to, uint64(n))
	if r == nil {
		return InvalidSTag
	}
	r.locks.rlock(off, size)
	defer r.locks.runlock(off, size)
	f := r.check(d, to, uint64(n), RemoteRead)
	if f == None {
		t.Take(r.buf[off : off+n])
	}
	return f
}

// Invalidate makes stag unusable on the peer's request (Send with Invalidate).
func (d Domain) Invalidate(stag uint32) Fault {
	r := d.Table.lookup(stag)
	if r == nil {
		return InvalidSTag
	}
	if f := d.mayInvalidate(r); f != None {
		return f
	}
	r.locks.lock(0, r.size)
	defer r.locks.unlock(0, r.size)
	// RFC 5040, section 7.2: "The Invalidate STag MUST be valid." [P35]
	if !r.Valid() {
		return Invalidated
	}
	r.state.Store(invalidated)
	return None
}

// mayInvalidate judges whether the stream's peer has a say over a region. It has
// over one that is bound to the stream: then "the only side effect is that the
// Remote Peer can no longer use the STag; thus, there are no security issues"
// (RFC 5042, section 6.4.5). Over any other it has only by the owner's leave, and
// not while others share it.
func (d Domain) mayInvalidate(r *Region) Fault {
	// RFC 5040, section 7.2: "The STag MUST be associated to this RDMAP Stream." [P35]
	if f := r.associated(d); f != None {
		return f
	}
	switch {
	// As in the RDMA verbs: a peer has no say over memory that was never offered
	// to any.
	case r.access&(RemoteRead|RemoteWrite|RemoteAtomic|RemoteInvalidate) == 0:
		return NeverOffered
	case r.stream != 0:
		return None
	case r.access&RemoteInvalidate == 0:
		return NotOffered
	// RFC 5040, section 8.1.1: "An RNIC MUST ensure that a Remote Peer is not able
	// to invalidate an STag enabled for remote access, if the STag is shared on
	// multiple streams." [P51]
	case d.Table.shared(r):
		return Shared
	}
	return None
}

// LocalCheck judges the owner's access of n octets at offset off of a region, to
// write them or to read. A zero length is never judged (RDMA verbs 7, "zero
// length: no checks at all").
func (d Domain) LocalCheck(r *Region, off, n int, write bool) Fault {
	switch {
	case n == 0:
		return None
	case r == nil:
		return InvalidSTag
	}
	return r.checkLocal(d, off, n, write)
}

// LocalLoad has t take n octets from offset off on of a region that the consumer
// named in its own Send or RDMA Write.
func (d Domain) LocalLoad(t Taker, r *Region, off, n int) Fault {
	if n == 0 || r == nil || !r.holds(off, n) {
		return d.LocalCheck(r, off, n, false)
	}
	r.locks.rlock(off, n)
	defer r.locks.runlock(off, n)
	f := r.checkLocal(d, off, n, false)
	if f == None {
		t.Take(r.buf[off : off+n])
	}
	return f
}

// LocalPlace copies p to offset off for the consumer's own operation: a
// received Send or the response to its own RDMA Read.
func (d Domain) LocalPlace(r *Region, off int, p layout.Content) Fault {
	n := p.Len()
	if n == 0 || r == nil || !r.holds(off, n) {
		return d.LocalCheck(r, off, n, true)
	}
	r.locks.lock(off, n)
	defer r.locks.unlock(off, n)
	f := r.checkLocal(d, off, n, true)
	if f == None {
		place(r.buf[off:off+n], p)
	}
	return f
}

// CheckInvalidate judges a LocalInvalidate before it is carried out.
func (d Domain) CheckInvalidate(r *Region) Fault {
	switch {
	case r == nil:
		return InvalidSTag
	case r.table != d.Table || r.pd != d.PD:
		return OtherDomain
	case r.state.Load() == revoked:
		return InvalidSTag
	}
	return None
}

// LocalInvalidate makes the STag unusable on the consumer's own request. One that
// is invalid already may be invalidated again (RDMA verbs 7).
func (d Domain) LocalInvalidate(r *Region) Fault {
	if f := d.CheckInvalidate(r); f != None {
		return f
	}
	r.locks.lock(0, r.size)
	defer r.locks.unlock(0, r.size)
	if r.buf == nil {
		return InvalidSTag
	}
	r.state.Store(invalidated)
	return None
}
