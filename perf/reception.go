package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
)

// maxWaiting is how many initiators may be connected without having said what they want
// to measure. One more takes the place of one that has been silent, as package admission has it.
const maxWaiting = 64

var (
	errUnderWay = errors.New("perf: another measurement is under way; try again later")
	errNoSuch   = errors.New("perf: no such measurement")
)

// A reception tells connection requests apart, and has one measurement go on at a time.
type reception struct {
	idle time.Duration // how long a measurement may stand still; 0 is for ever
	rnic *iwarp.RNIC
	// memory is how many bytes of buffers a measurement may have.
	memory int64
	ln     *Listener // nil: it is somebody else's

	reporting sync.Mutex
	ended     func(Visit)

	waiting  *admission.Table // of those that have asked for nothing yet
	rejecter admission.Rejecter

	mu      sync.Mutex
	current *visit // the one that measures, or nil
}

func newReception(rnic *iwarp.RNIC, ended func(Visit), idle time.Duration) *reception {
	if ended == nil {
		ended = func(Visit) {}
	}
	return &reception{ended: ended, idle: idle, rnic: rnic, memory: MaxMemory,
		waiting: admission.NewServerTable(maxWaiting, admission.Silence)}
}

// serve serves whoever comes to the Listener.
func (r *reception) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var requests sync.WaitGroup
	defer requests.Wait()
	defer cancel()
	for {
		req, err := r.ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		requests.Go(func() { _ = r.receive(ctx, req) }) // what is to be told of it has been
	}
}

// receive serves the connection of one request to its end. The error is that of a visit that failed.
func (r *reception) receive(ctx context.Context, req *iwarp.Request) error {
	h, err := helloOf(req)
	if err != nil {
		return r.decline(req, err)
	}
	v := r.measuring()
	switch {
	case h.control && v != nil:
		return r.decline(req, errUnderWay)
	case h.control:
		return r.enter(ctx, req, h)
	case v == nil || v.id != h.session:
		return r.decline(req, errNoSuch)
	}
	return v.deliver(ctx, req, h)
}

// measuring returns the visit whose measurement goes on, or nil.
func (r *reception) measuring() *visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// enter takes an initiator in, which is not in anyone's way before it says what it
// wants.
func (r *reception) enter(ctx context.Context, req *iwarp.Request, h hello) error {
	stops := ctx.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	slot, full := r.waiting.Enter(req.RemoteAddr(), cancel)
	if full != nil {
		cancel(nil)
		return r.decline(req, fmt.Errorf("perf: %w", full))
	}
	v := &visit{reception: r, id: h.session, slot: slot, stops: stops, lanes: make(chan arrival, 2*MaxQPs),
		done: make(chan struct{}), cancel: cancel}
	return v.serve(ctx, req)
}

// startMeasurement has a visit measure, unless another does.
func (r *reception) startMeasurement(v *visit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.current {
	case nil:
	case v:
		return errors.New("perf: the measurement has already begun")
	default:
		return errUnderWay
	}
	r.current = v
	v.slot.Leave()
	return nil
}

// reject tells the initiator why it is not taken. The error is a *admission.RejectedError.
func (r *reception) reject(req *iwarp.Request, reason error) error {
	text, _ := json.Marshal(failure(reason)) // nothing of it cannot be encoded
	return r.rejecter.RejectBecause(req, text, reason)
}

// decline is reject, which is reported where the initiator could not be told, or is of another version, which no later
// try will mend.
func (r *reception) decline(req *iwarp.Request, reason error) error {
	err := r.reject(req, reason)
	rejected := (*admission.RejectedError)(nil)
	if errors.As(reason, new(versionError)) || errors.As(err, &rejected) && rejected.Untold != nil {
		r.report(Visit{Remote: req.RemoteAddr(), Err: err})
	}
	return err
}

// leave reports on a visit that is over.
func (r *reception) leave(v *visit, report Visit) {
	v.slot.Leave()
	v.cancel(nil)
	r.mu.Lock()
	if r.current == v {
		r.current = nil
	}
	r.mu.Unlock()
	close(v.done)
	r.report(report)
}

func (r *reception) report(v Visit) {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.ended(v)
}

// arrivals count the bytes of payload that an end has received over its QPs, and those of them that it has placed
// ahead of others, which had not come by then.
type arrivals struct {
	Bytes uint64 `json:"bytes"`
	Ahead uint64 `json:"ahead"`
}

// arrived returns what this end has received so far.
func (s *session) arrived() (a arrivals) {
	for _, l := range s.qps {
		if l.qp == nil {
			continue
		}
		stats := l.qp.Stats()
		a.Ahead += stats.Ahead.PlacedBytes
		for _, t := range stats.Received {
			a.Bytes += t.Bytes
		}
	}
	return a
}

// both adds what the other end has told with its last verdict.
func (s *session) both() arrivals {
	here := s.arrived()
	return arrivals{here.Bytes + s.there.Bytes, here.Ahead + s.there.Ahead}
}

// aheadSince is the part of what has arrived since an earlier count that was placed ahead of others.
func (s *session) aheadSince(before arrivals) float64 {
	now := s.both()
	if now.Bytes == before.Bytes {
		return 0
	}
	return float64(now.Ahead-before.Ahead) / float64(now.Bytes-before.Bytes)
}
