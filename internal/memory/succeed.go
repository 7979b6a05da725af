package memory

// Succeed is Register under the STag of a region of the table, which ends as by Revoke: peers that were told the STag
// reach the new memory, and at no moment neither. When it returns, nobody reaches the old memory any more. The Fault
// says why the region cannot be succeeded, and it is as it was then.
func (t *Table) Succeed(old *Region, buf []byte, o Options) (*Region, Fault, error) {
	r, err := t.region(buf, o)
	if err != nil {
		return nil, None, err
	}
	r.index, r.first.stag = old.index, old.STag()
	r.stand(&r.first.grant)
	if f := old.yield(r); f != None {
		return nil, f, nil
	}
	return r, None, nil
}

// yield ends the region with another in its place, unless windows are bound to it.
func (r *Region) yield(to *Region) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows > 0 {
		return HasWindows
	}
	if !r.table.exchange(&r.tag, &to.tag) {
		return InvalidSTag
	}
	r.extent().forget()
	return None
}

// exchange puts a tag in the place of another. It reports whether that was in the table.
func (t *Table) exchange(old, by *tag) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.tags.Get(old.index) == old
	if found {
		t.tags.Put(old.index, by)
	}
	return found
}
