package perf

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// ping times message by message: each goes out when the answer to the one
// before has come, or for Reads when the one before is complete.
func (r *qpRun) ping(rtt *hdr.Histogram) error {
	last := time.Now()
	for i := range r.Count {
		if err := r.turn(i); err != nil {
			return err
		}
		if err := r.answered(i + 1); err != nil {
			return err
		}
		now := time.Now()
		record(rtt, now.Sub(last))
		last = now
	}
	return r.finish(r.Count, r.recvs.total)
}

// answered waits for the answers to n messages.
func (r *qpRun) answered(n int) error {
	if r.Op.Fetches() {
		return r.finish(n, 0)
	}
	return r.finish(0, n)
}

// pong is the responder's part.
func (r *qpRun) pong() error {
	for i := range r.Count {
		if err := r.finish(0, i+1); err != nil {
			return err
		}
		if err := r.turn(i); err != nil {
			return err
		}
	}
	return r.finish(r.Count, r.Count)
}

// turn posts message i, and only then a receive in place of the one that the other end's last message took: there are
// more, and nobody waits for it.
func (r *qpRun) turn(i int) error {
	if err := r.post(i); err != nil {
		return r.lost(err)
	}
	return r.recvs.post(r.qp)
}
