package perf

import (
	"context"
	"errors"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
)

// A session is one end of a measurement: its memory and its connections.
type session struct {
	side  side
	opts  Options // resolved
	apart bool    // the other end is in another process

	ccHere, ccThere string // the congestion control of this end and of the other; may be unknown
	rnic            *iwarp.RNIC
	pd              *iwarp.PD
	ctl             *control
	meters          // of all its connections

	link  network.Link // between the QPs; nil if there is none
	there arrivals     // what the other end has said that it received

	bufs    []buffers
	counter *callCounter // while slices count system calls, and nil where that is not possible
	qps     []*qpLane
	tcps    []*tcpLane
}

// newSession makes an end that has a control connection to come, and nothing else.
func newSession(s side, rnic *iwarp.RNIC) (*session, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	made := &session{side: s, rnic: rnic, pd: pd}
	if made.ctl, err = newControl(!s, rnic, pd); err != nil {
		made.release()
		return nil, err
	}
	return made, nil
}

// allocate makes the buffers and the lanes for the options. All of their memory is reserved first, until the domain
// ends: who gets none has taken none from others meanwhile.
func (s *session) allocate(opts Options) error {
	s.opts = opts
	if _, err := s.pd.Reserve(controlMemory + int(opts.memory())); err != nil {
		return err
	}
	s.tcps = make([]*tcpLane, opts.QPs)
	for i := range opts.QPs {
		bufs := newBuffers(int(opts.ring()))
		s.tcps[i] = &tcpLane{bufs: bufs}
		l, err := newQPLane(s.side, s.rnic, s.pd, bufs, opts.maxSlots())
		s.bufs = append(s.bufs, bufs)
		s.qps = append(s.qps, l)
		if err != nil {
			return err
		}
	}
	return nil
}

// regions returns where this end's memory is, lane by lane.
func (s *session) regions() []region {
	all := make([]region, len(s.qps))
	for i, l := range s.qps {
		all[i] = l.region()
	}
	return all
}

// meet takes note of where the other end's memory is.
func (s *session) meet(peer []region) error {
	if len(peer) != len(s.qps) {
		return &OptionError{"qps", "the two ends disagree on how many there are"}
	}
	for i, r := range peer {
		s.qps[i].peer = r
	}
	return nil
}

func (s *session) lane(j job, i int) lane {
	if j.Transport == TCP {
		return s.tcps[i]
	}
	return s.qps[i]
}

// prepare readies buffers and receives for a slice.
func (s *session) prepare(j job) error {
	for i := range j.lanes(s.opts.QPs) {
		s.bufs[i].fill(j.onLane(i), s.side)
		if err := s.lane(j, i).prepare(j.onLane(i)); err != nil {
			return err
		}
	}
	return nil
}

// initiate drives a prepared slice on all its lanes and says how long it took.
func (s *session) initiate(ctx context.Context, j job, rtt *hdr.Histogram) (time.Duration, error) {
	start := time.Now()
	err := concurrently(ctx, j.lanes(s.opts.QPs), func(ctx context.Context, i int) error {
		return s.lane(j, i).initiate(ctx, j.onLane(i), rtt)
	})
	return time.Since(start), err
}

// respond answers a prepared slice on all its lanes.
func (s *session) respond(ctx context.Context, j job) error {
	return concurrently(ctx, j.lanes(s.opts.QPs), func(ctx context.Context, i int) error {
		return s.lane(j, i).respond(ctx, j.onLane(i))
	})
}

// check verifies what the slice left in this end's memory.
func (s *session) check(j job) error {
	for i := range j.lanes(s.opts.QPs) {
		if err := s.bufs[i].check(j.onLane(i), s.side, i); err != nil {
			return err
		}
	}
	return nil
}

// stopCounting ends what slices that count system calls have begun.
func (s *session) stopCounting() {
	s.counter.close()
	s.counter = nil
}

// abort ends the connections that carry data at once.
func (s *session) abort() {
	for i, l := range s.qps {
		if l.qp != nil {
			l.qp.Abort()
		}
		if c := s.tcps[i].conn; c != nil {
			c.Close()
		}
	}
}

// linger is how long a link goes on for the end of what it carries.
const linger = time.Second

// close ends all connections: gracefully after success, at once otherwise.
func (s *session) close(ok bool) {
	s.stopCounting()
	if !ok {
		s.abort()
	}
	for i, l := range s.qps {
		if l.qp != nil {
			l.qp.Close()
		}
		s.tcps[i].close()
	}
	if s.ctl.qp != nil {
		s.ctl.qp.Close()
	}
	if s.link != nil {
		time.AfterFunc(linger, func() { s.link.Close() })
	}
}

// release gives back what a session that was closed has of its RNIC.
func (s *session) release() {
	for _, l := range s.qps {
		l.release()
	}
	s.ctl.release()
	_ = s.pd.Close()
}

// giveBack gives memory and a CQ back, as far as they were made.
func giveBack(cq *iwarp.CQ, regions ...*iwarp.MR) {
	for _, mr := range regions {
		if mr != nil {
			_ = mr.Deregister()
		}
	}
	if cq != nil {
		_ = cq.Close()
	}
}

// concurrently runs f for 0 to n-1 and returns the first error there was;
// it cancels the others' context.
func concurrently(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 { // no hand-over between goroutines inside the timed part
		return f(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// whileConnected returns a context that ends with the connection, too: without its
// control connection a measurement is over.
func whileConnected(ctx context.Context, qp *iwarp.QP) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := qp.Done()
	go func() {
		select {
		case <-done:
			cancel(qp.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// endReason prefers the reason why the connection, or the context, ended to what that did
// to a single work request.
func endReason(ctx context.Context, qp *iwarp.QP, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return qp.Cause(err)
}
