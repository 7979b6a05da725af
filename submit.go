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
	c  *call
	op Op
}

// Submit posts a request to the Send Queue, as PostSend does, and waits first while the queue is full. The completion
// goes to the Pending, and not to the CQ. Unsignaled has no effect. Requests that wait are posted in the order of the
// calls. If the context ends first, nothing is posted.
func (qp *QP) Submit(ctx context.Context, wr *SendWR) (*Pending, error) {
	if err := qp.made(); err != nil {
		return nil, err
	}
	if wr == nil {
		return nil, &OpError{Op: "post send", Err: qp.firstEnded(errNoRequest)}
	}
	c := &call{done: make(chan WC, 1), qp: qp, send: *wr}
	c.send.Unsignaled = false
	if err := qp.room.post(ctx, &c.send, c); err != nil {
		return nil, err
	}
	return &Pending{c, wr.Op}, nil
}

// Wait waits for the completion of the request, and returns it with its error (WC.Err). If the context ends first, the
// request goes on, and its memory stays the QP's until Wait returns a completion: call Wait again. Several goroutines
// may wait.
func (p *Pending) Wait(ctx context.Context) (WC, error) {
	if len(p.c.done) == 0 {
		if err := deadline.ContextError(ctx); err != nil {
			return WC{}, &OpError{Op: "wait for a completion", Err: err}
		}
	}
	wc, err := p.c.wait(ctx, p.op)
	if err != nil && len(p.c.done) == 0 {
		return WC{}, &OpError{Op: "wait for a completion", Err: err}
	}
	if err != nil {
		wc = <-p.c.done
	}
	p.c.done <- wc // for who else waits
	return wc, wc.Err()
}

// post posts a request as soon as there is room in the Send Queue, after those that have waited for longer.
func (r *room) post(ctx context.Context, wr *SendWR, c *call) error {
	if r.waiting.Load() == 0 {
		if err := c.qp.postSend(wr, c); !errors.Is(err, ErrQueueFull) {
			return err
		}
	}
	turn := r.join()
	defer r.leave(turn)
	for {
		if r.isFirst(turn) {
			if err := c.qp.postSend(wr, c); !errors.Is(err, ErrQueueFull) {
				return err
			}
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return &OpError{Op: wr.Op.call(), Err: deadline.ContextError(ctx)}
		}
	}
}

// awaitDone waits for the completion in a goroutine that does not receive for itself.
func (c *call) awaitDone(ctx context.Context, op Op) (WC, error) {
	var late <-chan time.Time
	limit := c.qp.cfg.Receives.Timeout
	if limit > 0 && engine.Op(op).Info().Asked != "" {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case wc := <-c.done:
			return wc, nil
		case <-ctx.Done():
			return WC{}, deadline.ContextError(ctx)
		case <-late:
			left := limit - c.heldBack()
			if left <= 0 {
				return WC{}, ErrHeldBack
			}
			late = time.After(left)
		}
	}
}

// heldBack returns for how long the peer has been held back, as messages wait to be received.
func (c *call) heldBack() time.Duration {
	if conn := c.qp.conn.Load(); conn != nil {
		return conn.HeldBack()
	}
	return 0
}

// A room has those who wait for room in a Send Queue, in their order.
type room struct {
	waiting atomic.Int32 // how many
	mu      sync.Mutex   // taken last
	turns   []chan struct{}
}

func (r *room) join() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn := make(chan struct{}, 1)
	r.turns = append(r.turns, turn)
	r.waiting.Add(1)
	return turn
}

// leave takes one out, and has the next try.
func (r *room) leave(turn chan struct{}) {
	r.mu.Lock()
	r.turns = slices.DeleteFunc(r.turns, func(t chan struct{}) bool { return t == turn })
	r.waiting.Add(-1)
	r.mu.Unlock()
	r.notify()
}

func (r *room) isFirst(turn chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[0] == turn
}

// notify has the first try: there may be room.
func (r *room) notify() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) > 0 {
		wake(r.turns[0])
	}
}
