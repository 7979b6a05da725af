package ddp

import (
	"cmp"
	"slices"
)

// maxIslands bounds the parts of a message that are placed apart from its
// beginning, and with them what a peer can make a queue remember. A source sends
// segments in order (RFC 5041, section 5.3: SHOULD), so that there are none.
const maxIslands = 1024

// A Coverage says which octets of a message are placed: those before low, and the islands,
// which are ascending and touch neither each other nor low. Its zero value has none.
type Coverage struct {
	low     uint64
	islands []span
}

// Take notes that n octets from an offset on are placed, unless one of them is already, or
// the parts with gaps between them become too many: then it reports false.
func (c *Coverage) Take(from, n uint64) bool {
	part := span{from, from + n}
	if c.overlaps(part) || c.full(part) {
		return false
	}
	c.add(part)
	return true
}

// A span is the octets of a message from one offset on, up to another.
type span struct{ from, to uint64 }

// end returns the end of the octet that lies highest.
func (c *Coverage) end() uint64 {
	if n := len(c.islands); n > 0 {
		return c.islands[n-1].to
	}
	return c.low
}

// find returns the first island that ends at or after an offset, or where it
// would be.
func (c *Coverage) find(from uint64) int {
	i, _ := slices.BinarySearchFunc(c.islands, from, func(s span, from uint64) int { return cmp.Compare(s.to, from) })
	return i
}

// overlaps reports whether any octet of a span is placed already.
func (c *Coverage) overlaps(s span) bool {
	if s.from == s.to {
		return false
	}
	i := c.find(s.from + 1)
	return s.from < c.low || i < len(c.islands) && c.islands[i].from < s.to
}

// full reports whether a span, which does not overlap, would be an island too many.
func (c *Coverage) full(s span) bool {
	i := c.find(s.from)
	touches := s.from <= c.low || i < len(c.islands) && (c.islands[i].to == s.from || c.islands[i].from == s.to)
	return len(c.islands) == maxIslands && !touches && s.from < s.to
}

// add notes a span which does not overlap.
func (c *Coverage) add(s span) {
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
func (c *Coverage) clear() { c.low, c.islands = 0, c.islands[:0] }
