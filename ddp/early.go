package ddp

import "slices"

// Early is what of a message was placed ahead of its turn, and has not had its turn: other
// segments that were sent before may still come. A nil Early has none.
//
// Where segments overlap, the bytes that were sent later are to stay. So a segment that has its
// turn is placed around what is here.
type Early struct{ parts spans }

// Take notes that n bytes from an offset on are placed, unless one of them is already, or
// the parts become too many: then it reports false.
func (e *Early) Take(from, n uint64) bool {
	part := span{from, from + n}
	if e.overlaps(part) || e.parts.full(part) {
		return false
	}
	if n > 0 {
		e.parts.add(part)
	}
	return true
}

// Drop takes back what Take has noted: the segment has its turn, or was not placed after all. It reports
// false, and does nothing, if not all of the bytes are noted.
func (e *Early) Drop(from, n uint64) bool {
	part := span{from, from + n}
	if e == nil || n == 0 {
		return n == 0
	}
	i, _ := e.parts.reach(span{from + 1, from + 1})
	if i == len(e.parts) || e.parts[i].from > from || e.parts[i].to < part.to {
		return false
	}
	whole := e.parts[i]
	rest := [...]span{{whole.from, part.from}, {part.to, whole.to}}
	e.parts = slices.Replace(e.parts, i, i+1, slices.DeleteFunc(rest[:], func(s span) bool { return s.len() == 0 })...)
	return true
}

// Free returns the first bytes from an offset on, and before end, that are not placed: from a up
// to b. There are none if these are equal.
func (e *Early) Free(from, end uint64) (a, b uint64) {
	if e == nil {
		return from, end
	}
	i, _ := e.parts.reach(span{from + 1, from + 1})
	if i < len(e.parts) && e.parts[i].from <= from {
		from = min(e.parts[i].to, end)
		i++
	}
	if i < len(e.parts) {
		end = min(end, max(from, e.parts[i].from))
	}
	return from, end
}

func (e *Early) overlaps(part span) bool {
	a, b := e.Free(part.from, part.to)
	return part.len() > 0 && (span{a, b} != part)
}
