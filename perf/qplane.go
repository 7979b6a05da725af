package perf

import (
	"context"
	"fmt"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/goiwarp/iwarp"
)

// pollBatch is how many completions are polled at once, as in perftest.
const pollBatch = 16

// spare is how many work requests and receives a queue has room for beyond
// the messages under way: for credits, and for signals behind Writes.
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
	recvs receives
	local []iwarp.SGE // the slots that this side's work requests name
	wc    [pollBatch]iwarp.WC
}

// A region says where a lane's memory is, to the other end.
type region struct {
	TX iwarp.Remote `json:"tx"` // what Reads take
	RX iwarp.Remote `json:"rx"` // where Writes go
}

// newQPLane registers a lane's memory and makes the CQ for its QP.
func newQPLane(s side, rnic *iwarp.RNIC, pd *iwarp.PD, bufs buffers, slots int) (*qpLane, error) {
	l := &qpLane{side: s, bufs: bufs}
	var err error
	if l.cq, err = rnic.CreateCQ(4 * (slots + spare)); err != nil {
		return nil, err
	}
	if l.tx, err = pd.Register(bufs.tx, iwarp.LocalWrite|iwarp.RemoteRead); err != nil {
		return nil, err
	}
	l.rx, err = pd.Register(bufs.rx, iwarp.LocalWrite|iwarp.RemoteWrite)
	return l, err
}

// config returns what the lane's QP needs.
func (l *qpLane) config(slots int) iwarp.QPConfig {
	// A Write whose arrival is signaled takes two work requests.
	return iwarp.QPConfig{SendCQ: l.cq, RecvCQ: l.cq, SendDepth: 2*slots + spare, RecvDepth: slots + spare}
}

// region returns what the other end must know of the lane's memory.
func (l *qpLane) region() region { return region{TX: l.tx.Remote(0), RX: l.rx.Remote(0)} }

func (l *qpLane) prepare(j job) error {
	l.local = l.slots(j)
	l.recvs = l.plan(j)
	return l.recvs.post(l.qp)
}

// slots returns what the work requests of a slice name as local memory: the
// slots of the sink for Reads, else those of the source.
func (l *qpLane) slots(j job) []iwarp.SGE {
	mr := l.tx
	if j.Op == Read {
		mr = l.rx
	}
	sgl := make([]iwarp.SGE, j.Slots)
	for slot := range sgl {
		sgl[slot] = mr.Slice(slot*j.Size, j.Size)
	}
	return sgl
}

func (l *qpLane) initiate(ctx context.Context, j job, rtt *hdr.Histogram) error {
	r := l.begin(ctx, j)
	if j.Quantity == Latency {
		return r.ping(rtt)
	}
	return r.stream()
}

func (l *qpLane) respond(ctx context.Context, j job) error {
	r := l.begin(ctx, j)
	switch {
	case j.Op == Read:
		return nil // the QP answers Reads by itself
	case j.Quantity == Latency:
		return r.pong()
	case j.Op == Send:
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
	out    ring // where messages leave from
	posted int  // messages handed to the send queue
	done   int  // messages of which the send queue says that they are done
	wrs    [2]iwarp.SendWR
}

func (l *qpLane) begin(ctx context.Context, j job) *qpRun {
	return &qpRun{qpLane: l, job: j, ctx: ctx, out: newRing(l.bufs.tx, j.Size, j.Slots)}
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
	return nil
}

// maxPolls is how often one polls in vain before one sleeps after all: some 40 us,
// several times what an answer takes. If none has come then, the other end waits
// for a processor, perhaps for this one.
const maxPolls = 64

// poll waits for completions, busily at first or asleep, and polls them.
func (r *qpRun) poll() (n int, err error) {
	n = r.cq.Poll(r.wc[:])
	for polls := 1; n == 0; polls++ {
		if !r.Poll || polls%maxPolls == 0 {
			if err := r.cq.Wait(r.ctx); err != nil {
				return 0, err
			}
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
		return r.recvs.received(r.qp, wc)
	}
	r.done = int(wc.ID) // the number of messages done, this one included
	return nil
}

func (r *qpRun) lost(err error) error {
	return fmt.Errorf("perf: %v of %d octets (%s): %w", r.Op, r.Size, r.Quantity, endReason(r.ctx, r.qp, err))
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
