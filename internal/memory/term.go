package memory

// A Term says which registrations of a region a request may mean that names it: the one that was current when it was
// posted, or the one whose request was posted last before it. As soon as it has met one of these it means no other.
// Later ones, which may be of other memory and for another stream, it never meant, whatever their STag.
//
// The zero value is that of a region that Register made, which has one registration for good. The numbers have 32
// bits, so that a request would have to wait for as many registrations of one region to mean another.
type Term struct{ now, next uint32 }

// Term is for a request that is just being posted; r may be nil.
func (r *Region) Term() Term {
	if r == nil || !r.Fast() {
		return Term{}
	}
	x := r.held()
	defer x.release()
	return Term{x.term, r.announced.Load()}
}

// Announce gives a registration its number when its request is posted: requests after it may name it.
func (r *Region) Announce(g *Registration) {
	g.term = r.terms.Add(1)
	g.before = r.announced.Swap(g.term)
}

// Withdraw is for the registration that was announced last, if its request was not posted after all. No other gets its
// number: who has posted a request that means it means none.
func (r *Region) Withdraw(g *Registration) { r.announced.CompareAndSwap(g.term, g.before) }

// meant judges whether a request on a stream may use what the region is registered as, and settles that it means that.
//
// What is private to a stream is neither a source nor a sink of another's requests: their bytes are its peer's.
func (t *Term) meant(d Domain, r *Region, x *extent) Fault {
	switch {
	case x.term != t.now && x.term != t.next:
		return Invalidated
	case r.Fast() && x.stream != 0 && x.stream != d.Stream:
		return OtherStream
	}
	t.now, t.next = x.term, x.term
	return None
}
