package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// The responder waits so long for all announced connections, and longer for each of them: they come one after the
// other, each in several round trips.
const (
	arrivalWait = 15 * time.Second
	arrivalEach = time.Second
)

// A respondent is the responder's way through a measurement: it answers the initiator's requests.
type respondent struct {
	*visit
	*session
	baseline net.Listener // for plain TCP at a port of its own; nil if there is none
	ccBefore string       // the listener's congestion control; empty if it was left alone
	slice    *job         // the last one
	meter    *meterage
	wrong    error // why it failed, if it did
	told     bool  // the initiator knows that
	ready    bool  // all connections are there
}

func (a *respondent) run(ctx context.Context, req *iwarp.Request) error {
	if err := a.acceptControl(ctx, req); err != nil {
		return err
	}
	defer a.closeListening()
	ctx, cancel := whileConnected(ctx, a.ctl.qp)
	defer cancel()
	defer a.watch(ctx)()
	for {
		next, err := a.ctl.next(ctx)
		if err != nil {
			return a.outcome(err)
		}
		if err := a.handle(ctx, next); err != nil {
			return a.ctl.orInterrupted(err)
		}
	}
}

// outcome is what the end of the control connection means. An initiator that was told what is wrong goes. That a slice
// fails which it has not asked about is what its end, or ours, does to the other connections.
func (a *respondent) outcome(end error) error {
	switch {
	case errors.As(end, new(*InterruptedError)):
		return end
	case a.told:
		return a.wrong
	case a.wrong == nil && errors.Is(end, iwarp.ErrPeerClosed):
		return nil
	}
	return end
}

// handle answers one request. What is wrong with a request, or with a slice, is
// told to the initiator; only what is wrong with the control connection is
// an error here.
func (a *respondent) handle(ctx context.Context, req request) error {
	switch {
	case req.Open != nil:
		return a.open(ctx, *req.Open)
	case req.Lanes != nil:
		return a.reply(ctx, answer{Lanes: a.regions(), CC: a.cc()}, a.meet(req.Lanes))
	case req.Slice != nil:
		return a.serveSlice(ctx, *req.Slice)
	case req.Check:
		used := a.used()
		return a.reply(ctx, answer{Usage: used, Arrived: a.arrived()}, a.verdict())
	default:
		return a.reply(ctx, answer{}, errors.New("perf: empty request"))
	}
}

func (a *respondent) reply(ctx context.Context, ans answer, err error) error {
	if err != nil {
		a.wrong, a.told = err, true
		ans = failure(err)
	}
	return a.ctl.answer(ctx, ans)
}

// open makes room for a measurement, says where plain TCP connections
// are taken, and then takes in what the initiator dials.
func (a *respondent) open(ctx context.Context, opts Options) error {
	at, bad := a.makeRoom(opts)
	err := a.reply(ctx, at, bad)
	if err != nil || bad != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, arrivalWait+time.Duration(a.expected())*arrivalEach)
	defer cancel()
	err = a.gather(ctx)
	a.ready = err == nil
	return err
}

// makeRoom returns where plain TCP connections are taken.
func (a *respondent) makeRoom(opts Options) (at answer, err error) {
	if opts, err = opts.Resolved(); err != nil {
		return at, err
	}
	if err := opts.fits(a.reception.memory); err != nil {
		return at, err
	}
	if err := a.reception.startMeasurement(a.visit); err != nil {
		return at, err
	}
	if err := a.useCC(opts.CC); err != nil {
		return at, err
	}
	if err := a.allocate(opts); err != nil {
		return at, orFull(err)
	}
	return a.openPlain()
}

// orFull says what an initiator can do for which there is no memory.
func orFull(err error) error {
	if errors.Is(err, iwarp.ErrLimit) {
		return fmt.Errorf("perf: the responder has too little memory left for this: try again later, or with less of qps, depth or size: %w", err)
	}
	return err
}

// useCC sets the congestion control of the connections that the initiator opens next.
func (a *respondent) useCC(name string) error {
	if name == "" {
		return nil
	}
	before, err := a.reception.ln.congestion(name)
	if err == nil {
		a.ccBefore = before
	}
	return err
}

// closeListening undoes what was done to take connections in.
func (a *respondent) closeListening() {
	a.closeBaseline()
	if a.ccBefore != "" {
		_, _ = a.reception.ln.congestion(a.ccBefore)
	}
}

// cc is the congestion control of this end, as far as it is known.
func (a *respondent) cc() string {
	if ln := a.reception.ln; ln != nil && ln.raw != nil {
		return ccOf(ln.raw)
	}
	return ""
}

func (a *respondent) closeBaseline() {
	if a.baseline != nil {
		a.baseline.Close()
	}
}

// gather takes in a QP and a plain TCP connection for each lane.
func (a *respondent) gather(ctx context.Context) error {
	for range a.expected() {
		select {
		case in := <-a.lanes:
			if err := a.accept(ctx, in); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("perf: waiting for the initiator's connections: %w", context.Cause(ctx))
		}
	}
	if a.baseline == nil {
		return nil
	}
	return a.acceptAlone(ctx)
}

// accept brings up what a connection request is for.
func (a *respondent) accept(ctx context.Context, in arrival) error {
	if in.plain {
		return a.acceptPlain(in)
	}
	return a.acceptQP(ctx, in)
}

// unexpected refuses a connection that is not one of those announced.
func (a *respondent) unexpected(in arrival) error {
	_ = a.reception.decline(in.req, errors.New("perf: no such connection in this measurement"))
	return fmt.Errorf("perf: the initiator opened connection %d of %d", in.index, len(a.qps))
}

// acceptQP brings up the QP of a connection request.
func (a *respondent) acceptQP(ctx context.Context, in arrival) error {
	if int(in.index) >= len(a.qps) || a.qps[in.index].qp != nil {
		return a.unexpected(in)
	}
	l := a.qps[in.index]
	in.reads = min(in.reads, maxReads)
	qp, err := in.req.Accept(ctx, iwarp.AcceptConfig{PD: a.pd, QP: l.config(a.opts), MPA: in.offer().Answer()})
	if err == nil {
		l.qp = qp
		a.join(qp)
	}
	return err
}

// serveSlice answers a slice. The initiator hears how it went when it asks.
func (a *respondent) serveSlice(ctx context.Context, j job) error {
	if err := a.admit(j); err != nil {
		return a.reply(ctx, answer{}, err)
	}
	if err := a.prepare(j); err != nil {
		return a.reply(ctx, answer{}, err)
	}
	a.slice = &j
	a.measureUsage(j)
	if err := a.ctl.answer(ctx, answer{}); err != nil {
		return err
	}
	if a.wrong, a.told = a.respond(ctx, j), false; a.wrong != nil {
		a.abort() // or the initiator would wait for what does not come
	}
	return nil
}

// admit refuses slices that the connections and buffers are not made for.
func (a *respondent) admit(j job) error {
	switch {
	case !a.ready:
		return errors.New("perf: a slice before the connections are up")
	case j.Transport == TCP && a.opts.NoBaseline:
		return errors.New("perf: no plain TCP in this measurement")
	}
	return j.validate(a.opts)
}

// measureUsage begins to measure what this process takes for a slice, if the initiator is
// not in the same process and does that itself.
func (a *respondent) measureUsage(j job) {
	switch {
	case !j.Calls:
		a.stopCounting()
	case a.counter == nil && j.Apart:
		a.counter = newCallCounter()
	}
	if a.meter = nil; j.Apart {
		a.meter = startMeter(a.counter)
	}
}

// used returns what this process has taken for the last slice, or nil if the initiator is
// in the same process.
func (a *respondent) used() *usage {
	if a.meter == nil {
		return nil
	}
	u := a.meter.usage()
	a.meter = nil
	return &u
}

// verdict says what is wrong with the last slice.
func (a *respondent) verdict() error {
	if a.wrong != nil {
		return a.wrong
	}
	if a.slice == nil {
		return errors.New("perf: nothing to check")
	}
	return a.check(*a.slice)
}
