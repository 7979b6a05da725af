package perf

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
)

// Run measures with both ends in this process, over loopback.
func Run(ctx context.Context, opts Options, watch Observer) (*Report, error) {
	return run(ctx, "", opts, watch)
}

// RunTwo measures bandwidth as Run does, and latency against the responder at addr, which
// is another process on this host. Within one process, goroutines that wait for each other
// share its threads, and the latency depends on how they are scheduled.
func RunTwo(ctx context.Context, addr string, opts Options, watch Observer) (*Report, error) {
	return run(ctx, addr, opts, watch)
}

func run(ctx context.Context, latency string, opts Options, watch Observer) (*Report, error) {
	opts, over, err := begun(opts)
	if err != nil {
		return nil, err
	}
	defer over.Close()
	if over.Inside {
		over.ReorderInside(opts.Reorder)
	}
	over.Tap(watch.Tap)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addr, end, err := respond(ctx, over.Untapped())
	if err != nil {
		return nil, err
	}
	defer func() { // the initiator has closed: the responder only has to notice
		cancel()
		end()
	}()
	s, err := connect(ctx, over, addr, opts, watch)
	if err != nil {
		return nil, err
	}
	other, err := s.besides(ctx, over, latency, watch)
	if err != nil {
		s.close(false)
		s.rnic.Close()
		return nil, err
	}
	return s.measure(ctx, other, opts, watch)
}

// besides connects a session to measure latency on, if there is another responder for that. Else it is this one.
func (s *session) besides(ctx context.Context, over *network.Network, addr string, watch Observer) (*session, error) {
	if addr == "" {
		return s, nil
	}
	other, err := connectSoon(ctx, over, addr, s.opts.forLatency(), watch)
	if err != nil {
		return nil, err
	}
	other.apart = true
	return other, nil
}

// respond has a responder run until ctx ends, and returns its address. The function waits
// for its end.
func respond(ctx context.Context, over *network.Network) (addr string, end func(), err error) {
	ln, err := listen(ctx, over, over.Here)
	if err != nil {
		return "", nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = ServeOwner(ctx, ln)
	}()
	return ln.Addr().String(), func() {
		<-served
		ln.Close()
	}, nil
}

// freeWithin is how long a responder of our own may take to notice that the last
// measurement has ended.
const freeWithin = 2 * time.Second

// connectSoon connects when the responder has no other measurement any more.
func connectSoon(ctx context.Context, over *network.Network, addr string, opts Options,
	watch Observer) (*session, error) {
	for start := time.Now(); ; {
		s, err := connect(ctx, over, addr, opts, watch)
		var told *PeerError
		if !errors.As(err, &told) || !told.UnderWay || time.Since(start) > freeWithin {
			return s, err
		}
		select {
		case <-time.After(freeWithin / 100):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
