package ddp

import (
	"cmp"
	"slices"
)

// maxIslands bounds the parts of a message that are placed apart from its
// beginning, and with them what a peer can make a queue remember. A source sends
// segments in order (RFC 5041, section 5.3: SHOULD), so that there are none. [Z31]
const maxIslands = 1024

// A Coverage says which bytes of a message are placed, however often: those before low, and the
// islands, which do not touch low. Its zero value has none.
type Coverage struct {
	low   uint64
	apart *islands // nil: there are none
}

// islands are the parts of a message that are placed apart from its beginning.
type islands struct {
	parts spans
	bytes uint64
}

// spans returns the islands.
func (c *Coverage) spans() spans {
	if c.apart == nil {
		return nil
	}
	return c.apart.parts
}

// Placed returns how many bytes are placed. Each counts once.
func (c *Coverage) Placed() uint64 {
	if c.apart == nil {
		return c.low
	}
	return c.low + c.apart.bytes
}

// InOrder reports whether the bytes that are placed are the first ones, and the part that was added last ends with
// them at end.
func (c *Coverage) InOrder(end uint64) bool { return c.apart == nil && end == c.low }

// Fresh returns how many of n bytes from an offset on are not placed.
func (c *Coverage) Fresh(from, n uint64) uint64 {
	end := from + n
	if end <= c.low {
		return 0
	}
	part := span{max(from, c.low), end}
	i, j := c.spans().reach(part)
	fresh := part.len()
	for _, s := range c.spans()[i:j] {
		fresh -= min(s.to, part.to) - max(s.from, part.from)
	}
	return fresh
}

// Full reports whether n bytes from an offset on would be one part too many with gaps around it.
func (c *Coverage) Full(from, n uint64) bool {
	return from > c.low && c.spans().full(span{from, from + n})
}

// Add notes that n bytes from an offset on are placed. Some of them may be already.
func (c *Coverage) Add(from, n uint64) {
	part := span{from, from + n}
	switch {
	case n == 0 || part.to <= c.low:
	case from > c.low:
		if c.apart == nil {
			c.apart = &islands{}
		}
		c.apart.bytes += c.apart.parts.add(part)
	case c.apart == nil:
		c.low = part.to
	default:
		c.raise(part.to)
	}
}

// AddNext is Add for n bytes that follow the first ones, while there are no islands.
func (c *Coverage) AddNext(n uint64) { c.low += n }

// raise has all bytes before an offset be placed, where there are islands.
func (c *Coverage) raise(to uint64) {
	_, j := c.apart.parts.reach(span{c.low, to})
	for _, s := range c.apart.parts[:j] {
		c.apart.bytes -= s.len()
		to = max(to, s.to)
	}
	c.low, c.apart.parts = to, slices.Delete(c.apart.parts, 0, j)
	if len(c.apart.parts) == 0 {
		c.apart = nil
	}
}

// Clear begins with the next message.
func (c *Coverage) Clear() { *c = Coverage{} }

// highestEnd returns the end of the byte that lies highest.
func (c *Coverage) highestEnd() uint64 {
	if parts := c.spans(); len(parts) > 0 {
		return parts[len(parts)-1].to
	}
	return c.low
}

// A span is the bytes of a message from one offset on, up to another.
type span struct{ from, to uint64 }

func (s span) len() uint64 { return s.to - s.from }

// spans ascend, and do not touch each other.
type spans []span

// reach returns the spans, from i up to j, that a part touches or overlaps.
func (s spans) reach(part span) (i, j int) {
	i, _ = slices.BinarySearchFunc(s, part.from, func(s span, from uint64) int { return cmp.Compare(s.to, from) })
	for j = i; j < len(s) && s[j].from <= part.to; j++ {
	}
	return i, j
}

// full reports whether a part would be a span too many.
func (s spans) full(part span) bool {
	i, j := s.reach(part)
	return len(s) >= maxIslands && i == j && part.len() > 0
}

// add notes a part, and returns how many bytes of it there were not before.
func (s *spans) add(part span) (fresh uint64) {
	i, j := s.reach(part)
	whole, had := part, uint64(0)
	for _, t := range (*s)[i:j] {
		had += t.len()
		whole = span{min(whole.from, t.from), max(whole.to, t.to)}
	}
	*s = slices.Replace(*s, i, j, whole)
	return whole.len() - had
}
