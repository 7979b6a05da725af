package ddp

import (
	"cmp"
	"slices"
)

// maxIslands bounds the parts of a message that are placed apart from its
// beginning, and with them what a peer can make a queue remember. A source sends
// segments in order (RFC 5041, Section 5.3: SHOULD), so that there are none.
const maxIslands = 1024

// coverage says which octets of the message under way are placed: those before low,
// and the islands, which are ascending and touch neither each other nor low.
type coverage struct {
	low     uint64
	islands []span
}

// A span is the octets of a message from one offset on, up to another.
type span struct{ from, to uint64 }

// end returns the end of the octet that lies highest.
func (c *coverage) end() uint64 {
	if n := len(c.islands); n > 0 {
		return c.islands[n-1].to
	}
	return c.low
}

// find returns the first island that ends at or after an offset, or where it
// would be.
func (c *coverage) find(from uint64) int {
	i, _ := slices.BinarySearchFunc(c.islands, from, func(s span, from uint64) int { return cmp.Compare(s.to, from) })
	return i
}

// overlaps reports whether any octet of a span is placed already.
func (c *coverage) overlaps(s span) bool {
	if s.from == s.to {
		return false
	}
	i := c.find(s.from + 1)
	return s.from < c.low || i < len(c.islands) && c.islands[i].from < s.to
}

// full reports whether a span, which does not overlap, would be an island too many.
func (c *coverage) full(s span) bool {
	i := c.find(s.from)
	touches := s.from <= c.low || i < len(c.islands) && (c.islands[i].to == s.from || c.islands[i].from == s.to)
	return len(c.islands) == maxIslands && !touches && s.from < s.to
}

// add notes a span which does not overlap.
func (c *coverage) add(s span) {
	if s.from == s.to {
		return
	}
	i := c.find(s.from)
	j := i // islands i to j become one with s
	if j < len(c.islands) && c.islands[j].to == s.from {
		s.from = c.islands[j].from
		j++
	}
	if j < len(c.islands) && c.islands[j].from == s.to {
		s.to = c.islands[j].to
		j++
	}
	if s.from == c.low {
		c.low = s.to
		c.islands = slices.Delete(c.islands, i, j)
		return
	}
	c.islands = slices.Replace(c.islands, i, j, s)
}

// clear begins with the next message.
func (c *coverage) clear() { c.low, c.islands = 0, c.islands[:0] }
