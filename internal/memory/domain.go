package memory

import "github.com/goiwarp/iwarp/internal/layout"

// A Domain is the table as one stream sees it: the regions of its Protection
// Domain, less those bound to another stream (RFC 5041, section 8.2: both
// associations are to be supported).
type Domain struct {
	Table  *Table
	PD     uint32
	Stream uint32 // never 0; another one for each connection of a QP
	Denied Access // what the QP lets no peer do, whatever memory was registered with
}

// Place copies p to tagged offset to of the memory named stag, as the payload
// of the peer's RDMA Write. No payload: nothing is checked (RFC 5041,
// section 5.2).
func (d Domain) Place(stag uint32, to uint64, p layout.Content) Fault {
	if p.Len() == 0 {
		return None
	}
	for {
		g := d.Table.lookup(stag)
		f := d.place(g, to, p)
		if d.settled(g, stag, f) {
			return f
		}
	}
}

func (d Domain) place(g *grant, to uint64, p layout.Content) Fault {
	if f := g.named(); f != None {
		return f
	}
	off, n := g.find(to, uint64(p.Len()))
	g.in.locks.lock(off, n)
	defer g.in.locks.unlock(off, n)
	f := g.check(d, to, uint64(p.Len()), RemoteWrite)
	if f == None {
		f = g.in.copyIn(off, p)
	}
	return f
}

// settled ends the hold of a grant, and reports whether what an access has found by it is final: see replaced.
func (d Domain) settled(g *grant, stag uint32, f Fault) bool {
	again := f != None && d.replaced(g, stag, f)
	g.release()
	return !again
}

// replaced reports whether an access has failed only because a bind, or a region that succeeds another, after the
// grant was found and before its lock was to be had, has put another in its place under the same STag: that one is to
// judge it.
func (d Domain) replaced(g *grant, stag uint32, f Fault) bool {
	if f != Invalidated && f != InvalidSTag || g == nil || g.in == nil {
		return false
	}
	now := d.Table.lookup(stag)
	defer now.release()
	return now != nil && now != g
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
	for {
		g := d.Table.lookup(stag)
		f := g.named()
		if f == None {
			f = g.check(d, to, n, want)
		}
		if d.settled(g, stag, f) {
			return f
		}
	}
}

// A Taker takes bytes of registered memory in.
type Taker interface {
	// Take copies the next bytes that were asked for. They are locked until it returns,
	// against all that comes from outside the consumer's program, and are not to be
	// referred to afterwards. The program itself may change them at any time, so that what
	// is made of them must be made of the copy.
	Take(p []byte)
}

// Load has t take n bytes from tagged offset to on, for the response to the
// peer's RDMA Read. It checks again: the region may have been revoked since
// the request was accepted.
func (d Domain) Load(t Taker, n int, stag uint32, to uint64) Fault {
	if n == 0 {
		return None
	}
	for {
		g := d.Table.lookup(stag)
		f := d.load(t, n, g, to)
		if d.settled(g, stag, f) {
			return f
		}
	}
}

func (d Domain) load(t Taker, n int, g *grant, to uint64) Fault {
	if f := g.named(); f != None {
		return f
	}
	off, size := g.find(to, uint64(n))
	g.in.locks.rlock(off, size)
	defer g.in.locks.runlock(off, size)
	f := g.check(d, to, uint64(n), RemoteRead)
	if f == None {
		f = g.in.copyOut(t, off, n)
	}
	return f
}

// Invalidate makes stag unusable on the peer's request (Send with Invalidate).
func (d Domain) Invalidate(stag uint32) Fault {
	for {
		g := d.Table.lookup(stag)
		if f := d.invalidate(g); d.settled(g, stag, f) {
			return f
		}
	}
}

func (d Domain) invalidate(g *grant) Fault {
	if g == nil {
		return InvalidSTag
	}
	if f := d.mayInvalidate(g); f != None {
		return f
	}
	// RFC 5040, section 7.2: "The Invalidate STag MUST be valid." [P35]
	return g.owner.invalidate(g)
}

// mayInvalidate judges whether the stream's peer has a say over memory. It has
// over what is bound to the stream: then "the only side effect is that the
// Remote Peer can no longer use the STag; thus, there are no security issues"
// (RFC 5042, section 6.4.5). Over any other it has only by the owner's leave, and
// not while others share it.
func (d Domain) mayInvalidate(g *grant) Fault {
	// RFC 5040, section 7.2: "The STag MUST be associated to this RDMAP Stream." [P35]
	if f := g.associated(d); f != None {
		return f
	}
	switch {
	case g.in == nil:
		return Invalidated
	// As in the RDMA verbs: a peer has no say over memory that was never offered
	// to any.
	case g.access&(RemoteRead|RemoteWrite|RemoteAtomic|RemoteInvalidate) == 0:
		return NeverOffered
	case g.stream != 0:
		return None
	case g.access&RemoteInvalidate == 0:
		return NotOffered
	// RFC 5040, section 8.1.1: "An RNIC MUST ensure that a Remote Peer is not able
	// to invalidate an STag enabled for remote access, if the STag is shared on
	// multiple streams." [P51]
	case d.Table.shared(g):
		return Shared
	}
	return None
}
