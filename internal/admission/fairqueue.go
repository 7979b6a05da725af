package admission

import "container/heap"

// A fairQueue is a heap of the sources that have something: the first has most. So what a newcomer costs
// under the lock hardly grows with the number of sources.
type fairQueue[S any] []*standing[S]

// A standing is where a source is in a fairQueue.
type standing[S any] struct {
	who   S
	size  int64  // how much it has; with nothing it is not in the queue
	since uint64 // of two that have as much, the one with the lower goes first; 0 goes last
	rank  int    // in the queue, from 1; 0: it is not there
}

// largest returns the source that has most, where own counts as if it had more. Of two that are equal it is own.
func (q fairQueue[S]) largest(own *standing[S], more int64) S {
	if len(q) > 0 && q[0].size > own.size+more {
		return q[0].who
	}
	return own.who
}

// rerank puts a source where it belongs after its size or since has changed.
func (q *fairQueue[S]) rerank(s *standing[S]) {
	switch {
	case s.rank > 0 && s.size > 0:
		heap.Fix(q, s.rank-1)
	case s.rank > 0:
		heap.Remove(q, s.rank-1)
	case s.size > 0:
		heap.Push(q, s)
	}
}

func (q fairQueue[S]) Len() int { return len(q) }

// Less reports whether a source is to be looked at before another.
func (q fairQueue[S]) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.size != b.size {
		return a.size > b.size
	}
	return a.since != 0 && (b.since == 0 || a.since < b.since)
}

// Swap swaps two sources.
func (q fairQueue[S]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].rank, q[j].rank = i+1, j+1
}

// Push appends a source: container/heap calls it.
func (q *fairQueue[S]) Push(s any) {
	*q = append(*q, s.(*standing[S]))
	(*q)[len(*q)-1].rank = len(*q)
}

// Pop takes the last source off: container/heap calls it.
func (q *fairQueue[S]) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last], s.rank = nil, 0
	*q = (*q)[:last]
	return s
}
