package chunk

// Fragments puts messages together whose DATA chunks come in any order: RFC 9260, section 6.9. The zero value is empty.
// How much it holds is for its owner to bound.
type Fragments[T any] struct{ parts map[uint32]fragment[T] }

type fragment[T any] struct {
	flags byte
	of    T
}

// Len is how many chunks wait for others.
func (f *Fragments[T]) Len() int { return len(f.parts) }

// Add takes what came in a chunk of a TSN that was not there before. If a message is whole with it, Add returns all of
// its parts in order, and holds them no longer.
func (f *Fragments[T]) Add(tsn uint32, flags byte, part T) (whole []T) {
	if f.parts == nil {
		f.parts = make(map[uint32]fragment[T])
	}
	f.parts[tsn] = fragment[T]{flags, part}
	first, ok := f.reaches(tsn, FlagBeginning, -1)
	if !ok {
		return nil
	}
	last, ok := f.reaches(tsn, FlagEnding, 1)
	if !ok {
		return nil
	}
	for at := first; at != last+1; at++ {
		whole = append(whole, f.parts[at].of)
		delete(f.parts, at)
	}
	return whole
}

// reaches follows TSNs that are there, one by one, to the first with a flag.
func (f *Fragments[T]) reaches(tsn uint32, flag byte, step int32) (at uint32, ok bool) {
	for at = tsn; ; at += uint32(step) {
		p, ok := f.parts[at]
		if !ok || p.flags&flag != 0 {
			return at, ok
		}
	}
}
