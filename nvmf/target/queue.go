package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/inbox"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// spareSlots are receives beyond the entries of the queue.
const spareSlots = 8

// A queue is one connection of a host's.
type queue struct {
	t     *Target
	slot  *admission.Slot // until it has a Connect, it may have to give way
	qid   uint16          // as the host has said it in its request
	depth int             // entries of the queue, and so how many commands may be under way
	ord   mpa.Depth

	qp      *iwarp.QP
	slots   *inbox.Inbox // where capsules arrive
	slotLen int
	memory  *buffers
	replies chan struct{} // a token for each completion that is posted and not sent
	reads   chan struct{} // a token for each RDMA Read that is under way

	ctx    context.Context // It ends with the queue.
	cancel context.CancelCauseFunc
	ended  func() bool // stops what aborts the connection when ctx ends
	lone   *time.Timer // ends a connection without a Connect
	faulty sync.Once   // somebody is told that the disk fails

	mu          sync.Mutex
	posted      map[uint64]func(iwarp.WC) // what to do when a request of ours is complete
	lastPosted  uint64
	begun       map[*request]bool // commands that are being carried out
	outstanding int               // and those without a completion that take an entry
	completed   int
	noFlow      bool // the completions do not say how far the queue has come
	entries     int  // as Connect has said
	draining    bool
	claimed     bool        // a Connect is carried out, or was
	ctrl        *controller // of the queue, after its Connect
}

func newQueue(t *Target, asked ulpdata.NVMeRequest, ord mpa.Depth) *queue {
	q := &queue{t: t, qid: asked.QID, depth: int(asked.HSQSize) + 1, ord: ord, slotLen: capsule.CommandLen,
		posted: map[uint64]func(iwarp.WC){}, begun: map[*request]bool{}}
	if q.qid != 0 {
		q.slotLen += t.cfg.InCapsule
	}
	q.replies = make(chan struct{}, q.depth+spareSlots)
	q.reads = make(chan struct{}, ord)
	q.ctx, q.cancel = context.WithCancelCause(context.Background())
	return q
}

// accept brings up the connection.
func (q *queue) accept(ctx context.Context, req *iwarp.Request) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)()
	ac := q.t.cfg.RDMA
	ac.MPA.PrivateData = ulpdata.NVMeReply{CRQSize: uint16(q.depth)}.Append(nil)
	ac.MPA.IRD, ac.MPA.MaxIRD, ac.MPA.ORD, ac.NoReads = 1, 1, q.ord, false
	ac.QP.SendCQ, ac.QP.RecvCQ, ac.QP.SRQ = nil, nil, nil
	ac.QP.RecvDepth, ac.QP.SendDepth = q.depth+spareSlots, 2*cap(q.replies)+cap(q.reads)
	ac.QP.MaxInline, ac.QP.Linger, ac.QP.HalfClose = capsule.CompletionLen, -1, false
	ac.Prepare = q.prepare
	if _, err = req.Accept(ctx, ac); err != nil {
		q.release()
		return err
	}
	if agreed := q.qp.Query().ORD; agreed < cap(q.reads) {
		q.reads = make(chan struct{}, max(agreed, 1)) // with none, the first Read fails
	}
	q.ended = context.AfterFunc(q.ctx, func() { _ = q.qp.Abort() })
	q.lone = time.AfterFunc(connectTimeout, func() { q.abort(errors.New("nvme: a connection without a Connect")) })
	return nil
}

// prepare posts the receives before the Reply is sent.
func (q *queue) prepare(qp *iwarp.QP) (err error) {
	q.qp, q.memory = qp, newBuffers(qp.PD(), q.t.cfg.QueueMemory)
	q.slots, err = inbox.Open(qp, q.depth+spareSlots, q.slotLen)
	return err
}

// run takes completions until the connection has ended, and clears up.
func (q *queue) run() {
	_ = inbox.Each(context.Background(), q.qp.RecvCQ(), func(wc *iwarp.WC) error {
		q.completes(*wc)
		return nil
	})
	q.lone.Stop()
	q.ended()
	q.cancel(q.qp.Err())
	q.rest()
	q.leave()
	_ = q.qp.Close() // which has ended: why was said
	q.release()
	q.t.forget(q)
}

// release gives back what the queue has of the RNIC.
func (q *queue) release() {
	q.slots.Close()
	if q.memory != nil {
		q.memory.release()
	}
}

// completes deals with a completion. It never waits.
func (q *queue) completes(wc iwarp.WC) {
	if wc.Op != iwarp.OpRecv {
		q.mu.Lock()
		f := q.posted[wc.ID]
		delete(q.posted, wc.ID)
		q.mu.Unlock()
		if f != nil { // else it was told of the end by the completion of a Write before
			f(wc)
		}
		return
	}
	if wc.Status != iwarp.StatusSuccess {
		return // the connection has ended
	}
	if err := q.startCommand(&wc); err != nil {
		q.abort(err)
	}
}

// startCommand starts a command that has arrived.
func (q *queue) startCommand(wc *iwarp.WC) error {
	data := q.slots.Bytes(wc)
	cmd, err := capsule.ParseCommand(data)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.draining || q.ctx.Err() != nil:
		return nil // it is sent again to whoever is there then
	case q.outstanding >= q.depth && q.counts(cmd):
		return fmt.Errorf("nvme: more commands than the queue has entries: %d", q.depth)
	}
	if q.counts(cmd) {
		q.outstanding++
	}
	if q.ctrl != nil {
		q.ctrl.heard()
	}
	r := &request{q: q, ctrl: q.ctrl, slot: wc.ID, cmd: cmd, inCapsule: data[capsule.CommandLen:],
		done: make(chan struct{})}
	q.begun[r] = true
	go r.run()
	return nil
}

// counts reports whether a command takes an entry of the queue until it is answered. One that waits for an event takes
// none: what comes after it may be here before it is known to wait.
func (q *queue) counts(cmd capsule.Command) bool {
	return q.qid != 0 || cmd.Opcode != capsule.OpAsyncEvent
}

// abort aborts the connection, for a reason.
func (q *queue) abort(reason error) {
	q.cancel(reason)
	_ = q.qp.Abort()
}

// drain begins no more commands, and returns when those that are under way are answered.
func (q *queue) drain() {
	q.mu.Lock()
	q.draining = true
	q.mu.Unlock()
	q.rest()
}

// underWay is a list of the commands that are being carried out.
func (q *queue) underWay() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.begun))
}

// rest waits for the commands that are being carried out.
func (q *queue) rest() {
	for _, r := range q.underWay() {
		<-r.done
	}
}

// leave takes a queue from its controller, whose end is that of the Admin Queue.
func (q *queue) leave() {
	reason := context.Cause(q.ctx)
	q.mu.Lock()
	c := q.ctrl
	q.mu.Unlock()
	q.t.cfg.Logger.Info("queue ended", "peer", q.qp.RemoteAddr(), "queue", q.qid, "reason", reason)
	if c != nil {
		c.lost(q, reason)
	}
}
