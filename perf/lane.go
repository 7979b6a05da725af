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

func newBuffers(octets int) buffers {
	return buffers{make([]byte, octets), make([]byte, octets)}
}

// fill readies the buffers for a slice.
func (b buffers) fill(j job) {
	p := pattern{j.Salt}
	tx := newRing(b.tx, j.Size, j.Slots)
	p.fill(tx.mem, 0)
	p.poison(newRing(b.rx, j.Size, j.Slots).mem, 0)
	if j.Corrupt && j.Op == Read {
		spoil(tx.message(tx.source(j.Count - 1)))
	}
}

// check verifies what a slice left behind on that side of lane i.
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
