package memory

import "github.com/goiwarp/iwarp/mpa/layout"

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
	return r.checkLocal(d, r.extent(), off, n, write)
}

// LocalLoad has t take n octets from offset off on of a region that the consumer
// named in its own Send or RDMA Write.
func (d Domain) LocalLoad(t Taker, r *Region, off, n int) Fault {
	if n == 0 || r == nil {
		return d.LocalCheck(r, off, n, false)
	}
	x := r.extent()
	if !x.holds(off, n) {
		return r.checkLocal(d, x, off, n, false)
	}
	x.locks.rlock(off, n)
	defer x.locks.runlock(off, n)
	f := r.checkLocal(d, x, off, n, false)
	if f == None {
		x.give(t, off, n)
	}
	return f
}

// LocalPlace copies p to offset off for the consumer's own operation: a
// received Send or the response to its own RDMA Read.
func (d Domain) LocalPlace(r *Region, off int, p layout.Content) Fault {
	n := p.Len()
	if n == 0 || r == nil {
		return d.LocalCheck(r, off, n, true)
	}
	return r.placeLocal(d, r.extent(), off, p)
}

func (r *Region) placeLocal(d Domain, x *extent, off int, p layout.Content) Fault {
	n := p.Len()
	if !x.holds(off, n) {
		return r.checkLocal(d, x, off, n, true)
	}
	x.locks.lock(off, n)
	defer x.locks.unlock(off, n)
	f := r.checkLocal(d, x, off, n, true)
	if f == None {
		x.place(off, p)
	}
	return f
}

// SinkPlace is LocalPlace for the response to an RDMA Read that was asked for with an STag: what
// the region has been registered as since is not its sink.
func (d Domain) SinkPlace(r *Region, stag uint32, off int, p layout.Content) Fault {
	x := r.extent()
	if x.stag != stag {
		return Invalidated
	}
	return r.placeLocal(d, x, off, p)
}

// SinkCheck is LocalCheck to write, likewise.
func (d Domain) SinkCheck(r *Region, stag uint32, off, n int) Fault {
	x := r.extent()
	if x.stag != stag {
		return Invalidated
	}
	return r.checkLocal(d, x, off, n, true)
}

// A Target is what a consumer can invalidate: a region or a window.
type Target interface {
	// own judges whether a stream's consumer has a say over it.
	own(d Domain) Fault
	// invalidate makes its STag unusable, if it still stands for a grant; nil: whatever it
	// stands for.
	invalidate(of *grant) Fault
}

// CheckInvalidate judges a LocalInvalidate before it is carried out.
func (d Domain) CheckInvalidate(t Target) Fault { return t.own(d) }

// LocalInvalidate makes the STag unusable on the consumer's own request. One that
// is invalid already may be invalidated again (RDMA verbs 7).
func (d Domain) LocalInvalidate(t Target) Fault {
	if f := t.own(d); f != None {
		return f
	}
	if f := t.invalidate(nil); f != Invalidated {
		return f
	}
	return None
}

func (r *Region) own(d Domain) Fault {
	switch {
	case r.table != d.Table || r.pd != d.PD:
		return OtherDomain
	case r.extent().state.Load() == revoked:
		return InvalidSTag
	}
	return None
}
