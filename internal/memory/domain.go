package memory

// A Domain is the table as one stream sees it: the regions of its Protection
// Domain, less those bound to another stream (RFC 5041, section 8.2: both
// associations are to be supported).
type Domain struct {
	Table  *Table
	PD     uint32
	Stream uint32 // never 0
}

// open finds the region named stag and judges an access of n octets, n > 0, at
// tagged offset to. If it is allowed the region is locked for reading: the caller
// unlocks it when it has copied.
func (d Domain) open(stag uint32, to, n uint64, want Access) (*Region, Fault) {
	r := d.Table.lookup(stag)
	if r == nil {
		return nil, InvalidSTag
	}
	r.mu.RLock()
	if f := r.check(d, to, n, want); f != None {
		r.mu.RUnlock()
		return nil, f
	}
	return r, None
}

// Place copies p to tagged offset to of the region named stag, as the payload
// of the peer's RDMA Write. No payload: nothing is checked (RFC 5041,
// section 5.2).
func (d Domain) Place(stag uint32, to uint64, p []byte) Fault {
	if len(p) == 0 {
		return None
	}
	r, f := d.open(stag, to, uint64(len(p)), RemoteWrite)
	if f == None {
		copy(r.buf[to-r.base:], p)
		r.mu.RUnlock()
	}
	return f
}

// CheckRead judges the whole range of a peer's RDMA Read Request. Size 0 is
// never judged (RFC 5040, section 5.2.1).
func (d Domain) CheckRead(stag uint32, to uint64, size uint32) Fault {
	if size == 0 {
		return None
	}
	r, f := d.open(stag, to, uint64(size), RemoteRead)
	if f == None {
		r.mu.RUnlock()
	}
	return f
}

// Load copies len(dst) octets from tagged offset to, for the response to the
// peer's RDMA Read. It checks again: the region may have been revoked since
// the request was accepted.
func (d Domain) Load(dst []byte, stag uint32, to uint64) Fault {
	if len(dst) == 0 {
		return None
	}
	r, f := d.open(stag, to, uint64(len(dst)), RemoteRead)
	if f == None {
		copy(dst, r.buf[to-r.base:])
		r.mu.RUnlock()
	}
	return f
}

// Invalidate makes stag unusable on the peer's request (Send with Invalidate).
// An STag that is already invalid may be invalidated again.
func (d Domain) Invalidate(stag uint32) Fault {
	r := d.Table.lookup(stag)
	if r == nil {
		return InvalidSTag
	}
	// RFC 5040, section 5.3: an STag "not associated with the RDMAP Stream" is
	// not invalidated, and reported as one that cannot be. [P35]
	if r.associated(d) != None {
		return NotInvalidatable
	}
	// RFC 5040, section 8.1.1: an STag shared on several streams cannot be
	// invalidated by one of the peers. [P51]
	if d.Table.shared(r) {
		return NotInvalidatable
	}
	// As in the RDMA verbs: a peer has no say over memory that was never offered
	// to any.
	if r.access&(RemoteRead|RemoteWrite) == 0 {
		return AccessRights
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.valid = false
	return None
}
