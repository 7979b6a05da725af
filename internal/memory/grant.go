package memory

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/ddp"
)

// A grant is what an STag stands for: bytes of registered memory, and what peers may do with
// them. That of a region has all of its bytes, that of a window those it was bound to.
//
// All but its state is settled before anybody finds it. Whoever looks at bytes holds the locks of
// these, and looks at the state then; that changes with the locks of all bytes of the grant
// held, so that who has changed it knows that no copy is under way any more. Others, such as
// the check of a request that is posted, do not wait for a copy that is under way.
type grant struct {
	offer
	state atomic.Uint32
	// again tells that it becomes another grant of the same tag when it has ended and nobody holds it, so
	// that a bind or a registration takes no memory: immutable.
	again   bool
	holders atomic.Int32 // of one that becomes another: see tag.hold
}

// An offer is what a grant is about.
type offer struct {
	stag   uint32
	pd     uint32
	stream uint32 // the one stream that may use it; 0 is any of the PD
	access Access
	base   uint64 // tagged offset of the first byte
	at     int    // where that is in the memory
	size   int
	in     *extent // the memory; nil: of a window that is not bound
	owner  Target  // whose grant it is
}

// The states of a grant, in the order in which it goes through them.
const (
	usable      = iota
	invalidated // its STag
	revoked
)

// A tag is what the table has under an STag's index.
//
// RDMA verbs 7: an STag is an index, the upper 24 bits, which the RNIC gives, and a key, the
// lower 8, which the consumer gives where it may choose.
type tag struct {
	table *Table // immutable
	pd    uint32 // immutable
	index uint32 // immutable: the STag with a key of 0
	cur   atomic.Pointer[grant]
	// What programs ask for with every request: of cur.
	stag atomic.Uint32
	base atomic.Uint64
}

// stand has the STag stand for a grant from now on.
func (t *tag) stand(g *grant) {
	t.stag.Store(g.stag)
	t.base.Store(g.base)
	t.cur.Store(g)
}

// hold returns what the STag stands for now, and has it stay what it is until release.
func (t *tag) hold() *grant {
	g := t.cur.Load()
	if g.again {
		g = t.holdAgain()
	}
	return g
}

// holdAgain is hold where grants become others.
func (t *tag) holdAgain() *grant {
	for {
		if g := t.cur.Load(); t.still(g) {
			return g
		}
	}
}

// still counts a holder of a grant that was found, if the STag stands for it still. It is not made another while that
// is so, and has stayed what it was.
func (t *tag) still(g *grant) bool {
	g.holders.Add(1)
	if t.cur.Load() == g {
		return true
	}
	g.release()
	return false
}

// release ends a hold. There may be no grant.
func (g *grant) release() {
	if g != nil && g.again {
		g.holders.Add(-1)
	}
}

// idle reports whether a grant that has ended can become another.
func (g *grant) idle() bool { return g.holders.Load() == 0 }

// offered returns what the present grant is about.
func (t *tag) offered() offer {
	g := t.hold()
	defer g.release()
	return g.offer
}

// STag returns the Steering Tag under which peers name the memory.
func (t *tag) STag() uint32 { return t.stag.Load() }

// Base returns the tagged offset of the first byte.
func (t *tag) Base() uint64 { return t.base.Load() }

// Access returns the rights that were granted.
func (t *tag) Access() Access { return t.offered().access }

// Size returns how many bytes there are.
func (t *tag) Size() int { return t.offered().size }

// Valid reports whether the STag can be used: it was neither invalidated nor
// revoked.
func (t *tag) Valid() bool { return t.cur.Load().usable() }

// named judges whether an STag stands for any memory.
func (g *grant) named() Fault {
	switch {
	case g == nil:
		return InvalidSTag
	case g.in == nil:
		return Invalidated
	}
	return None
}

func (g *grant) usable() bool { return g.state.Load() == usable }

// check judges a peer's access of n bytes, n > 0, at tagged offset to. The
// caller holds a lock if it reaches them then.
func (g *grant) check(d Domain, to, n uint64, want Access) Fault {
	switch g.state.Load() {
	case revoked:
		return InvalidSTag
	case invalidated:
		return Invalidated
	}
	if f := g.associated(d); f != None {
		return f
	}
	if g.access&want == 0 {
		return missing(want)
	}
	// RDMA verbs 7: an access needs the right of the STag and of the QP.
	if d.Denied&want != 0 {
		return Denied
	}
	// The rule of Writes is that of Reads too, under codes of their own. [D40] [P25]
	switch ddp.CheckBounds(to, n, g.base, uint64(g.size)) {
	case 0:
		return None
	case ddp.CodeTOWrap:
		return Wrap
	}
	return Bounds
}

// missing is the fault of memory without a right.
func missing(want Access) Fault {
	switch want {
	case RemoteWrite:
		return NoRemoteWrite
	case RemoteAtomic:
		return NoRemoteAtomic
	}
	return NoRemoteRead
}

func (g *grant) associated(d Domain) Fault {
	switch {
	case g.pd != d.PD:
		return OtherDomain
	case g.stream != 0 && g.stream != d.Stream:
		return OtherStream
	}
	return None
}

// find returns where in the memory an access of n bytes at tagged offset to begins: it has no bytes if it leaves the
// grant, which check finds out.
func (g *grant) find(to, n uint64) (off, size int) {
	if ddp.CheckBounds(to, n, g.base, uint64(g.size)) != 0 {
		return g.at, 0
	}
	return g.at + int(to-g.base), int(n)
}

// changeState has the grant go on to a state, and returns when no access is under way any more.
func (g *grant) changeState(state uint32) {
	g.in.locks.lock(g.at, g.size)
	defer g.in.locks.unlock(g.at, g.size)
	g.state.Store(state)
}
