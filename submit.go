package iwarp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/engine"
)

// A Pending is a request that QP.Submit has posted.
type Pending struct {
	qp *QP
	op Op

	// Guarded by qp.mu.
	call    *call // nil: it has completed, and wc is its completion
	wc      WC
	waiters int
	there   bool // wc is
}

// Submit posts a request to the Send Queue, as PostSend does, and waits first while the queue is full. The completion
// goes to the Pending, and not to the CQ. Unsignaled has no effect. Requests that wait are posted in the order of the
// calls. If the context ends first, nothing is posted. Nor is it if the error wraps ErrHeldBack: the queue stays full
// until the program calls Receive.
//
// A program that does not need the outcome need not call Wait. The memory is still the QP's until the completion.
func (qp *QP) Submit(ctx context.Context, wr *SendWR) (*Pending, error) {
	p, err := submit(ctx, qp, wr)
	if err != nil {
		return nil, err
	}
	return &p, nil // which may be on the stack of the caller, as this is inlined
}

func submit(ctx context.Context, qp *QP, wr *SendWR) (Pending, error) {
	if err := qp.made(); err != nil {
		return Pending{}, err
	}
	if wr == nil {
		return Pending{}, &OpError{Op: "post send", Err: qp.firstEnded(errNoRequest)}
	}
	if err := contextError(ctx); err != nil {
		return Pending{}, &OpError{Op: wr.Op.call(), Err: err}
	}
	c, send := newCall(qp, SGE{}), *wr
	send.Unsignaled = false
	if err := qp.room.post(ctx, &send, c); err != nil {
		c.free()
		return Pending{}, err
	}
	return Pending{qp: qp, op: wr.Op, call: c}, nil
}

// Wait waits for the completion of the request, and returns it with its error (WC.Err). If the context ends first, the
// request goes on, and its memory stays the QP's until Wait returns a completion: call Wait again. The error wraps
// ErrHeldBack if the answer is behind unread messages: call Receive, and then Wait again. Several goroutines may wait.
func (p *Pending) Wait(ctx context.Context) (wc WC, err error) {
	if p == nil || p.qp == nil {
		return WC{}, errNotMade("Pending", "QP.Submit makes one")
	}
	c := p.enter()
	if c == nil {
		return p.wc, p.wc.Err()
	}
	if err = contextError(ctx); err == nil {
		wc, err = c.wait(ctx, p.op)
	}
	if err != nil {
		select {
		case wc = <-c.done:
			err = nil
		default:
		}
	}
	if p.leave(wc, err == nil); err != nil {
		return WC{}, &OpError{Op: "wait for a completion", Err: err}
	}
	return wc, wc.Err()
}

// enter returns what to wait for, or nil if the request has completed.
func (p *Pending) enter() *call {
	p.qp.mu.Lock()
	defer p.qp.mu.Unlock()
	p.waiters++
	return p.call
}

// leave notes the completion, if it is there. The last that has waited gives the call back.
func (p *Pending) leave(wc WC, there bool) {
	p.qp.mu.Lock()
	defer p.qp.mu.Unlock()
	if p.waiters--; there {
		p.wc, p.there = wc, true
		p.call.done <- wc // for who else waits
	}
	if p.there && p.waiters == 0 {
		<-p.call.done
		p.call.free()
		p.call = nil
	}
}

// post posts a request as soon as there is room in the Send Queue, after those that have waited for longer.
func (r *room) post(ctx context.Context, wr *SendWR, c *call) error {
	err := ErrQueueFull
	if r.waiting.Load() == 0 {
		err = c.qp.postSend(wr, c)
	}
	if errors.Is(err, ErrQueueFull) {
		err = r.wait(ctx, wr, c)
	}
	if err != nil {
		return &OpError{Op: wr.Op.call(), Err: refused(err)}
	}
	return nil
}

func (r *room) wait(ctx context.Context, wr *SendWR, c *call) error {
	r.join(c)
	defer r.leave(c)
	patience := c.patience(wr.Op)
	defer patience.end()
	for {
		if r.isFirst(c) {
			if err := c.qp.postSend(wr, c); !errors.Is(err, ErrQueueFull) {
				return err
			}
		}
		select {
		case <-c.turn:
		case <-ctx.Done():
			return deadline.ContextError(ctx)
		case <-patience.asks():
			if patience.isOver() {
				return ErrHeldBack
			}
		}
	}
}

// awaitDone waits for the completion in a goroutine that does not receive for itself.
func (c *call) awaitDone(ctx context.Context, op Op) (WC, error) {
	patience := c.patience(op)
	defer patience.end()
	for {
		select {
		case wc := <-c.done:
			return wc, nil
		case <-ctx.Done():
			return WC{}, deadline.ContextError(ctx)
		case <-patience.asks():
			if patience.isOver() {
				return WC{}, ErrHeldBack
			}
		}
	}
}

// A patience ends a call whose answer is behind messages that nobody receives: see Receives.Timeout.
type patience struct {
	qp    *QP
	asked bool        // the peer answers the request itself, and not only one before it or to confirm it
	timer *time.Timer // nil: there is no bound
}

// patience returns that of a call, unless its completion is there.
func (c *call) patience(op Op) patience {
	qp := c.qp
	if qp.cfg.Receives.Timeout <= 0 || len(c.done) > 0 {
		return patience{}
	}
	return patience{qp, engine.Op(op).Info().Asked != "", qp.rnic.newTimer(qp.cfg.Receives.Timeout)}
}

// asks returns what says that it may be over.
func (p *patience) asks() <-chan time.Time {
	if p.timer == nil {
		return nil
	}
	return p.timer.C
}

// isOver reports whether the peer has been held back for long enough. If it has not, it asks again.
func (p *patience) isOver() bool {
	left := p.qp.cfg.Receives.Timeout
	if conn := p.qp.conn.Load(); conn != nil {
		left -= conn.HeldBack(p.asked)
	}
	p.timer.Reset(max(left, 0))
	return left <= 0
}

func (p *patience) end() {
	if p.timer != nil {
		p.timer.Stop()
		p.qp.rnic.timers.Put(p.timer)
	}
}

// newTimer takes a timer from the pool of the RNIC, or makes one.
func (r *RNIC) newTimer(d time.Duration) *time.Timer {
	t, ok := r.timers.Get().(*time.Timer)
	if !ok {
		return time.NewTimer(d)
	}
	t.Reset(d)
	return t
}

// A room has those who wait for room in a Send Queue, in their order.
type room struct {
	waiting atomic.Int32 // how many
	mu      sync.Mutex   // taken last
	turns   []*call
}

func (r *room) join(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, c)
	r.waiting.Add(1)
}

// leave takes one out, and has the next try.
func (r *room) leave(c *call) {
	r.mu.Lock()
	r.turns = slices.DeleteFunc(r.turns, func(o *call) bool { return o == c })
	r.waiting.Add(-1)
	r.mu.Unlock()
	r.notify()
}

func (r *room) isFirst(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[0] == c
}

// notify has the first try: there may be room.
func (r *room) notify() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) > 0 {
		wake(r.turns[0].turn)
	}
}
