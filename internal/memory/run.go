package memory

import "github.com/goiwarp/iwarp/internal/layout"

// A Run places bytes that come one after the other: those of one message, which are in several segments. It holds
// the locks of some of the memory that they go to, so that what the first was judged by holds for all: no STag is
// invalidated, and nothing revoked, before the Run has ended.
//
// Whoever has begun a Run ends it before anything else is done with a region, and before anything is waited for. The
// zero value has ended. The last bytes of each segment are stored as a word, as those may be of a Write that a
// program waits for (docs/memory.md), whose last segment is shorter than that word.
type Run struct {
	in      *extent
	at, end int    // bytes of the memory whose locks are held, and that the access may reach
	to      uint64 // what the byte at is named by
	left    int    // how many segments more it takes
}

// maxRun is how many segments a Run takes: others who wait for its locks do not wait for more.
const maxRun = 64

// BeginPlace begins a Run with the place of n bytes, n > 0, of the peer's RDMA Write. It reports false where Place
// may refuse them: then there is no Run.
func (d Domain) BeginPlace(r *Run, stag uint32, to uint64, n int) bool {
	g := d.Table.lookup(stag)
	defer g.release()
	if g.named() != None {
		return false
	}
	off, size := g.find(to, uint64(n))
	if size == 0 {
		return false
	}
	r.lock(g.in, off, n, g.at+g.size, to)
	if g.check(d, to, uint64(n), RemoteWrite) == None {
		return true
	}
	r.End()
	return false
}

// BeginLocalPlace is BeginPlace for the consumer's own operation: the byte at offset off of a region is named by to.
// The Run takes none but the first bytes from there on, most of them. There may be no region, and most may be more
// than it has.
func (d Domain) BeginLocalPlace(r *Run, m *Region, t *Term, off, n, most int, to uint64) bool {
	if m == nil || n > most {
		return false
	}
	x := m.held()
	defer x.release()
	if !x.holds(off, n) {
		return false
	}
	r.lock(x, off, n, off+min(most, x.size-off), to)
	if m.checkMeant(d, x, t, off, n, true) == None {
		return true
	}
	r.End()
	return false
}

// lock takes the locks of n bytes at offset off. They have others, too, up to an offset at most.
func (r *Run) lock(x *extent, off, n, most int, to uint64) {
	*r = Run{in: x, at: off, end: x.locks.reach(off+n, most), to: to, left: maxRun}
	x.locks.lock(off, n)
}

// Place copies p to where it is named. It reports false, if that takes another Run, and has done nothing then; or if
// the memory has vanished.
func (r *Run) Place(to uint64, p []byte) bool {
	from := to - r.to
	if r.left == 0 || from > uint64(r.end-r.at) || len(p) > r.end-r.at-int(from) {
		return false
	}
	r.left--
	return r.in.copyIn(r.at+int(from), layout.Plain(p)) == None
}

// End gives the locks back.
func (r *Run) End() {
	if r.in != nil {
		r.in.locks.unlock(r.at, r.end-r.at)
		*r = Run{}
	}
}
