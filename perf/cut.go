package perf

import (
	"context"
	"time"
)

// A slice of bandwidth ends with a round trip in which nothing more is sent, and one of latency has others around it:
// those that begin it and verify it. Over a path with a long one slices are longer, so that it is a small part of each.
const (
	bandwidthTrips = 20 // round trips that a slice of bandwidth is long, at least
	latencyTrips   = 4  // the same of latency
	leastTrips     = 10 // a slice of bandwidth with fewer says more of the round trip than of the bandwidth

	longPairs  = 3 // pairs over such a path, at least
	maxStretch = 3 // how many times the time asked for a quantity may take, so that its slices are as long as that
	// replaceFor is how many times the time asked for a quantity may take elsewhere: with what goes on between
	// slices, and with slices in place of disturbed ones.
	replaceFor = 1.5
	probeTrips = 6 // round trips of which the shortest is taken for the path's, before there are others
)

// A cut is how a quantity is cut into pairs of slices.
type cut struct {
	pairs int           // that are wanted
	slice time.Duration // of one transport; of no meaning if messages are counted
}

// trips returns how many round trips a slice is long, at least.
func (q Quantity) trips() time.Duration {
	if q == Latency {
		return latencyTrips
	}
	return bandwidthTrips
}

// cut returns how a quantity is measured over a path with such a round trip: in fewer slices than usual where they have
// to be longer, and for longer than was asked for if even longPairs of them take that, within bounds.
func (o Options) cut(q Quantity, trip time.Duration) cut {
	least := q.trips() * trip
	switch {
	case least <= sliceTime, o.Iters > 0 && q == Latency:
		return cut{o.Pairs(), o.Duration / time.Duration(o.Pairs())}
	case o.Iters > 0:
		return cut{pairs: longPairs}
	}
	all := max(o.Duration, min(longPairs*least, maxStretch*o.Duration))
	pairs := min(o.Pairs(), max(longPairs, int(all/least)))
	return cut{pairs, all / time.Duration(pairs)}
}

// LongEnough returns for which Options.Duration slices of bandwidth are long enough beside such a round trip, in tenths
// of a second.
func LongEnough(trip time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return (bandwidthTrips*trip + step - 1).Truncate(step)
}

// bound returns how long a quantity that is cut so may take. It is 0 if messages are counted.
func (o Options) bound(c cut, transports int) time.Duration {
	asked := o.Duration * time.Duration(transports)
	switch {
	case o.Iters > 0:
		return 0
	case time.Duration(c.pairs)*c.slice > o.Duration:
		return maxStretch * asked
	}
	return time.Duration(replaceFor * float64(asked))
}

// probe finds out how long a round trip of the path takes, by messages of one byte.
func (m *measurement) probe(ctx context.Context) error {
	_, err := m.slice(ctx, m.bandwidth, job{
		Transport: IWARP, Op: Send, Quantity: Latency, Size: 1, Count: probeTrips, Slots: MinReceives,
		Depth: 1, Poll: m.opts.Poll,
	})
	return err
}

// noteTrip takes note of the round trips of a slice of latency. Plain TCP may have another path than QPs over another
// network, or through a relay; it is measured in slices as long as theirs.
func (m *measurement) noteTrip(j job, x sample) {
	if j.Transport != IWARP || j.Quantity != Latency {
		return
	}
	if trip := time.Duration(x.rtt.Min()); m.trip == 0 || trip < m.trip {
		m.trip = trip
	}
}
