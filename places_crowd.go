package iwarp

import "container/heap"

// A crowd is the sources that have half-open connections, as a heap: the first has most. So what a connection of a flood
// costs, while a lock is held, does not grow with how many sources there are.
type crowd []*sourcePlaces

// largest returns the source that has most half-open connections: of several own, or else the one with the oldest that
// is silent.
func (c crowd) largest(own *sourcePlaces) *sourcePlaces {
	if len(c) > 0 && c[0].halfOpen() > own.halfOpen() {
		return c[0]
	}
	return own
}

// rerank puts a source where it belongs after one of its connections has become half-open, or ceased to be.
func (c *crowd) rerank(s *sourcePlaces) {
	switch {
	case s.rank == 0: // that is its first
		heap.Push(c, s)
	case s.halfOpen() == 0:
		heap.Remove(c, s.rank-1)
	default:
		heap.Fix(c, s.rank-1)
	}
}

func (c crowd) Len() int { return len(c) }

// Less reports whether a source is to be looked at before another.
func (c crowd) Less(i, j int) bool {
	if a, b := c[i].halfOpen(), c[j].halfOpen(); a != b {
		return a > b
	}
	return c[i].isOlder(c[j])
}

// isOlder reports whether the oldest silent connection of a source is older than that of another, which may have none.
func (s *sourcePlaces) isOlder(than *sourcePlaces) bool {
	a, b := oldest(&s.silent), oldest(&than.silent)
	return a != nil && (b == nil || a.order < b.order)
}

// Swap swaps two sources.
func (c crowd) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].rank, c[j].rank = i+1, j+1
}

// Push appends a source: container/heap calls it.
func (c *crowd) Push(s any) {
	*c = append(*c, s.(*sourcePlaces))
	s.(*sourcePlaces).rank = len(*c)
}

// Pop takes the last source off: container/heap calls it.
func (c *crowd) Pop() any {
	last := len(*c) - 1
	s := (*c)[last]
	(*c)[last], s.rank = nil, 0
	*c = (*c)[:last]
	return s
}
