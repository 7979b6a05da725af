package memory

import "github.com/goiwarp/iwarp/internal/layout"

// LocalCheck judges the owner's access of n bytes at offset off of a region, to
// write them or to read. A zero length is never judged (RDMA verbs 7, "zero
// length: no checks at all").
func (d Domain) LocalCheck(r *Region, t *Term, off, n int, write bool) Fault {
	switch {
	case n == 0:
		return None
	case r == nil:
		return InvalidSTag
	}
	x := r.held()
	f := r.checkMeant(d, x, t, off, n, write)
	x.release()
	return f
}

// checkMeant is checkLocal for a request.
func (r *Region) checkMeant(d Domain, x *extent, t *Term, off, n int, write bool) Fault {
	if f := r.checkLocal(d, x, off, n, write); f != None {
		return f
	}
	return t.meant(d, r, x)
}

// LocalLoad has taker take n bytes from offset off on of a region that the consumer
// named in its own Send or RDMA Write.
func (d Domain) LocalLoad(taker Taker, r *Region, t *Term, off, n int) Fault {
	if n == 0 || r == nil {
		return d.LocalCheck(r, t, off, n, false)
	}
	x := r.held()
	defer x.release()
	if !x.holds(off, n) {
		return r.checkMeant(d, x, t, off, n, false)
	}
	x.locks.rlock(off, n)
	defer x.locks.runlock(off, n)
	f := r.checkMeant(d, x, t, off, n, false)
	if f == None {
		f = x.copyOut(taker, off, n)
	}
	return f
}

// LocalPlace copies p to offset off for the consumer's own operation: a
// received Send or the response to its own RDMA Read.
func (d Domain) LocalPlace(r *Region, t *Term, off int, p layout.Content) Fault {
	n := p.Len()
	if n == 0 || r == nil {
		return d.LocalCheck(r, t, off, n, true)
	}
	x := r.held()
	defer x.release()
	if !x.holds(off, n) {
		return r.checkMeant(d, x, t, off, n, true)
	}
	x.locks.lock(off, n)
	defer x.locks.unlock(off, n)
	f := r.checkMeant(d, x, t, off, n, true)
	if f == None {
		f = x.copyIn(off, p)
	}
	return f
}

// A Target is what a consumer can invalidate: a region or a window.
type Target interface {
	// STag returns the present one.
	STag() uint32
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
	case r.cur.Load().state.Load() == revoked:
		return InvalidSTag
	}
	return None
}
