package perf

import (
	"context"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// A lane is one connection of a measurement as its two ends use it: a QP, or
// a plain TCP connection.
type lane interface {
	// prepare puts in place what the other end's first message needs.
	prepare(j job) error
	// initiate drives the slice and returns when it is known to be complete.
	// Latencies, in nanoseconds of a whole round trip, go to rtt.
	initiate(ctx context.Context, j job, rtt *hdr.Histogram) error
	// respond answers a slice that the other end drives.
	respond(ctx context.Context, j job) error
}

// buffers are a lane's memory: what is sent from and what is received into.
// A QP and the TCP connection beside it share them.
type buffers struct{ tx, rx []byte }

func newBuffers(n int) buffers {
	return buffers{make([]byte, n), make([]byte, n)}
}

// fill readies the buffers for a slice, as far as this side uses them.
func (b buffers) fill(j job, s side) {
	p := pattern{j.Salt}
	if j.receives(!s) {
		tx := newRing(b.tx, j.Size, j.Slots)
		p.fill(tx.mem, 0)
		if j.Corrupt && j.Op.Fetches() {
			spoil(tx.message(tx.source(j.Count - 1)))
		}
	}
	if j.receives(s) {
		p.poison(newRing(b.rx, j.Size, j.Slots).mem, 0)
	}
}

// check verifies what a slice has left on that side of lane i.
func (b buffers) check(j job, s side, i int) error {
	if !j.receives(s) {
		return nil
	}
	if wrong := newRing(b.rx, j.Size, j.Slots).check(j); wrong != nil {
		wrong.Side, wrong.QP = s.String(), i
		return wrong
	}
	return nil
}
