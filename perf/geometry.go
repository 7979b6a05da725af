package perf

import (
	"slices"
	"time"
)

// sliceTime is how long a slice takes, unless the time for all of them is too short or too
// long for that.
const (
	sliceTime = 10 * time.Millisecond
	minPairs  = 5
	maxPairs  = 100
)

// Where messages are counted, a slice has sliceMessages of them, unless that makes too few slices, or more than
// maxCounted.
const (
	sliceMessages = 40
	maxCounted    = 40
)

// Pairs returns into how many slices of each transport the time for a quantity is cut, or its messages are, of one
// operation and size. It is of options as a Report has them, see Judged; a Result has how many there were, which may be
// more, and are fewer over a path with a long round trip, where slices are longer.
func (o Options) Pairs() int {
	if o.Iters > 0 {
		return min(maxCounted, max(minPairs, o.Iters/sliceMessages))
	}
	return int(min(maxPairs, max(minPairs, o.Duration/sliceTime)))
}

// Judged reports whether there are enough pairs of slices that disturbed ones are dropped, and ratios called
// inconclusive: 20 or more, of 10 ms or of 40 messages. It is of options as a Report has them, with the defaults in
// place of zeros. Over a path with a long round trip there may be fewer all the same: see Pairs.Judged.
func (o Options) Judged() bool { return o.Pairs() >= judgedFrom }

// streams is how many streams of messages there are.
func (o Options) streams(q Quantity) int {
	switch {
	case q == Latency:
		return 1
	case o.Bidirectional:
		return 2 * o.QPs
	default:
		return o.QPs
	}
}

// forLatency returns the options of connections that only latency is measured on: there is
// one, with few buffers.
func (o Options) forLatency() Options {
	o.QPs = 1
	if o.Depth == 0 || o.Depth > latencySlots {
		o.Depth = latencySlots
	}
	o.RXDepth = max(o.Depth, MinReceives)
	return o
}

// depth returns how many messages of that size may be under way on a QP.
func (o Options) depth(size int) int {
	if o.Depth != 0 {
		return o.Depth
	}
	ring := min(softRing, MaxMemory/2/max(1, o.QPs))
	return min(DefaultDepth, max(minSlots, ring/size))
}

// rxDepth returns how many messages of that size a QP has receives for.
func (o Options) rxDepth(size int) int {
	rx, depth := o.RXDepth, o.depth(size)
	if rx == 0 {
		// With few more receives than messages are sent together, either end waits while the other works.
		rx = min(max(DefaultRXDepth, DefaultRXDepth/DefaultDepth*depth), MaxDepth, softReceives/size)
	}
	return max(rx, depth, MinReceives)
}

// slots returns how many messages of an operation a QP has buffers for, in each direction.
func (o Options) slots(op Op, size int) int {
	if op.tells() {
		return o.rxDepth(size)
	}
	return max(o.depth(size), MinReceives)
}

// sizesOf returns the sizes that an operation is measured with: an Atomic Operation has one.
func (o Options) sizesOf(op Op) []int {
	if n := op.size(); n != 0 {
		return []int{n}
	}
	return o.Sizes
}

// allSizes returns those of all operations.
func (o Options) allSizes() []int {
	var sizes []int
	for _, op := range o.Ops {
		if n := op.size(); n != 0 && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	return append(sizes, o.Sizes...)
}

// maxDepth returns the greatest depth that any of the sizes has.
func (o Options) maxDepth() int {
	most := 0
	for _, size := range o.allSizes() {
		most = max(most, o.depth(size))
	}
	return most
}

// maxSlots returns the most slots that any of the sizes has.
func (o Options) maxSlots() int {
	most := 0
	for _, op := range o.Ops {
		for _, size := range o.sizesOf(op) {
			most = max(most, o.slots(op, size))
		}
	}
	return most
}

// ring returns the bytes of buffer that a QP needs in each direction.
func (o Options) ring() int64 {
	most := int64(0)
	for _, op := range o.Ops {
		for _, size := range o.sizesOf(op) {
			most = max(most, int64(size)*int64(o.slots(op, size)))
		}
	}
	return most
}

// memory returns the bytes of buffer that one side needs in all.
func (o Options) memory() int64 { return 2 * o.ring() * int64(o.QPs) }

// reads returns the IRD and ORD to ask for: the Peer may have no more.
func (o Options) reads() int {
	most := maxReads
	if p, err := o.preset(); err == nil && p != nil && p.Initiate.ORD > 0 {
		most = int(p.Initiate.ORD)
	}
	return min(o.maxDepth(), most)
}
