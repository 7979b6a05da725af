package memory

import "github.com/goiwarp/iwarp/ddp"

// Most bounds what a region may be registered as: so many pieces of memory, and bytes in all.
type Most struct{ Pieces, Bytes int }

// Allocate returns a region without memory, whose STag is invalid until FastRegister.
func (t *Table) Allocate(pd uint32, most Most) (*Region, error) {
	r := &Region{tag: tag{table: t, pd: pd}, most: most}
	x := &r.first
	r.allocate(x)
	x.owner, x.pd = r, pd
	x.state.Store(invalidated)
	err := t.enter(&r.tag, func(stag uint32) *grant {
		x.stag = stag &^ keyMask
		return &x.grant
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// allocate has an extent that is to become another, with the locks of what it may be registered as.
func (r *Region) allocate(x *extent) {
	x.in, x.again, x.locks = x, true, newStripes(r.most.Bytes)
}

// A Registration says what a region is registered as.
type Registration struct {
	Memory  [][]byte // one after the other
	Base    uint64   // tagged offset of the first byte
	Access  Access
	Key     uint8
	Private bool // only the stream on which it is registered may use it

	term, before uint32 // which of the region's it is, and the one announced before: see Announce
}

// Bytes returns how many bytes the memory has.
func (g *Registration) Bytes() (n int) {
	for _, p := range g.Memory {
		n += len(p)
	}
	return n
}

// FastRegister registers memory in a region that has none.
//
// RDMA verbs 7 and 8: region and stream are of one Protection Domain, the STag is invalid, the
// list no longer than what was allocated, and the key the consumer's.
func (d Domain) FastRegister(r *Region, g *Registration) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := d.CheckRegister(r, g); f != None {
		return f
	}
	if r.Valid() {
		return StillValid
	}
	x := r.fresh()
	x.offer = offer{in: x, owner: r, pd: r.pd, access: g.Access.whole(), base: g.Base, stag: r.index | uint32(g.Key)}
	x.term = g.term
	x.setPieces(g.Memory)
	if g.Private {
		x.stream = d.Stream
	}
	x.state.Store(usable)
	r.spare = r.extent()
	r.stand(&x.grant)
	return None
}

// fresh returns an extent that nobody holds, without memory.
func (r *Region) fresh() *extent {
	if x := r.spare; x != nil && x.idle() {
		return x
	}
	x := new(extent)
	r.allocate(x)
	return x
}

// CheckRegister judges a FastRegister before it is carried out, except for the state of the STag.
func (d Domain) CheckRegister(r *Region, g *Registration) Fault {
	n := g.Bytes()
	switch f := r.own(d); {
	case f != None:
		return f
	case len(g.Memory) > r.most.Pieces || n > r.most.Bytes:
		return TooLarge
	case ddp.Wraps(g.Base, uint64(n)):
		return Wrap
	}
	return None
}

// Fast reports whether FastRegister is for the region.
func (r *Region) Fast() bool { return r.most != Most{} }

// LocalMay judges the owner's access as LocalCheck does, as far as that is settled before
// it begins: what a region is registered as by FastRegister is not.
func (d Domain) LocalMay(r *Region, off, n int, write bool) Fault {
	if n == 0 || r == nil || !r.Fast() {
		return d.LocalCheck(r, new(Term), off, n, write)
	}
	if f := r.own(d); f != None {
		return f
	}
	if off < 0 || n < 0 || off > r.most.Bytes || n > r.most.Bytes-off {
		return Bounds
	}
	return None
}
