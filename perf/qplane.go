package perf

import (
	"context"
	"fmt"
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
)

// pollBatch is how many completions are polled at once, as in perftest.
const pollBatch = 16

// spare is how many work requests and receives a queue has room for in addition
// to the messages under way: for credits, and for signals after Writes.
const spare = 16

// A qpLane is a lane over a QP.
type qpLane struct {
	side   side
	qp     *iwarp.QP
	cq     *iwarp.CQ // of both queues, so that there is one thing to wait for
	bufs   buffers
	tx, rx *iwarp.MR
	peer   region

	// Of the slice under way:
	recvs  receives
	local  []iwarp.SGE // the slots that this side's work requests name
	wc     [pollBatch]iwarp.WC
	memory []iwarp.SendWR // of a run's list
}

// A region says where a lane's memory is, to the other end.
type region struct {
	TX iwarp.Remote `json:"tx"` // what Reads and Atomic Operations take
	RX iwarp.Remote `json:"rx"` // where Writes go
}

// newQPLane registers a lane's memory and makes the CQ for its QP. It returns what there is of it even if there is an
// error.
func newQPLane(s side, rnic *iwarp.RNIC, pd *iwarp.PD, bufs buffers, slots int) (l *qpLane, err error) {
	l = &qpLane{side: s, bufs: bufs}
	if l.cq, err = rnic.CreateCQ(4 * (slots + spare)); err != nil {
		return l, err
	}
	if l.tx, err = pd.Register(bufs.tx, iwarp.LocalWrite|iwarp.RemoteRead|iwarp.RemoteAtomic); err != nil {
		return l, err
	}
	l.rx, err = pd.Register(bufs.rx, iwarp.LocalWrite|iwarp.RemoteWrite)
	return l, err
}

func (l *qpLane) release() { giveBack(l.cq, l.tx, l.rx) }

// config returns what the lane's QP needs.
func (l *qpLane) config(opts Options) iwarp.QPConfig {
	// A Write whose arrival is signaled takes two work requests.
	return iwarp.QPConfig{
		SendCQ: l.cq, RecvCQ: l.cq, SendDepth: 2*opts.maxDepth() + spare,
		RecvDepth: opts.maxSlots() + spare, MaxInline: opts.Inline,
	}
}

// region returns what the other end must know of the lane's memory.
func (l *qpLane) region() region { return region{TX: l.tx.Remote(0), RX: l.rx.Remote(0)} }

func (l *qpLane) prepare(j job) error {
	l.local = l.slots(j)
	l.recvs = l.plan(j)
	return l.recvs.post(l.qp)
}

// slots returns what the work requests of a slice name as local memory: the
// slots of the sink for what fetches, else those of the source.
func (l *qpLane) slots(j job) []iwarp.SGE {
	mr := l.tx
	if j.Op.Fetches() {
		mr = l.rx
	}
	sgl := make([]iwarp.SGE, j.Slots)
	for slot := range sgl {
		sgl[slot] = mr.Slice(slot*j.Size, j.Size)
	}
	return sgl
}

func (l *qpLane) initiate(ctx context.Context, j job, rtt *hdr.Histogram) error {
	r := l.newRun(ctx, j)
	if j.Quantity == Latency {
		return r.ping(rtt)
	}
	return r.stream()
}

func (l *qpLane) respond(ctx context.Context, j job) error {
	r := l.newRun(ctx, j)
	switch {
	case j.Both:
		return r.streamBack()
	case j.Op.Fetches():
		return nil // the QP answers by itself
	case j.Quantity == Latency:
		return r.pong()
	case j.Op.tells():
		return r.absorb()
	default:
		return r.answerSignal()
	}
}

// A qpRun is one slice on a QP as one side sees it.
type qpRun struct {
	*qpLane
	job
	ctx    context.Context
	out    ring           // where messages leave from
	posted int            // messages handed to the send queue
	done   int            // messages of which the send queue says that they are done
	list   []iwarp.SendWR // to be posted together
}

func (l *qpLane) newRun(ctx context.Context, j job) *qpRun {
	l.memory = slices.Grow(l.memory[:0], j.PostList+2)
	return &qpRun{qpLane: l, job: j, ctx: ctx, out: newRing(l.bufs.tx, j.Size, j.Slots), list: l.memory}
}

// wait returns after at least one completion has been taken account of.
func (r *qpRun) wait() error {
	n, err := r.poll()
	if err != nil {
		return r.lost(err)
	}
	for i := range r.wc[:n] {
		if err := r.completed(&r.wc[i]); err != nil {
			return err
		}
	}
	if r.Quantity == Latency {
		return nil // ping and pong post receives after their message
	}
	return r.recvs.post(r.qp)
}

// pollTime is for how long we poll in vain before we sleep: longer than any answer takes, that of an emulated machine
// too. If none has come by then, the other end waits for a processor, perhaps for this one.
const pollTime = 20 * time.Millisecond

// pollClock is how often we poll between two looks at the clock.
const pollClock = 16

// poll waits for completions, busily at first or asleep, and polls them. CQ.Next would do neither: it takes one at a
// time, and sleeps at once.
func (r *qpRun) poll() (n int, err error) {
	if n = r.cq.Poll(r.wc[:]); n == 0 && r.Poll {
		for start, i := time.Now(), 1; n == 0 && (i%pollClock != 0 || time.Since(start) < pollTime); i++ {
			n = r.cq.Poll(r.wc[:])
		}
	}
	for n == 0 {
		if err := r.cq.Wait(r.ctx); err != nil {
			return 0, endReason(r.ctx, r.qp, err)
		}
		n = r.cq.Poll(r.wc[:])
	}
	return n, nil
}

func (r *qpRun) completed(wc *iwarp.WC) error {
	if err := wc.Err(); err != nil {
		return r.lost(err)
	}
	if wc.Op == iwarp.OpRecv {
		return r.recvs.received(wc)
	}
	r.done = int(wc.ID) // the number of messages done, this one included
	return nil
}

func (r *qpRun) lost(err error) error {
	return fmt.Errorf("perf: %v of %s (%s): %w", r.Op, wording.Bytes(r.Size), r.Quantity, endReason(r.ctx, r.qp, err))
}

// finish waits until the send queue is done with n messages and n receives
// have come in.
func (r *qpRun) finish(sends, recvs int) error {
	for r.done < sends || r.recvs.done < recvs {
		if err := r.wait(); err != nil {
			return err
		}
	}
	return nil
}
