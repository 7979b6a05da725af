package iwarp

import (
	"context"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Send sends one message and returns when what is below (TCP, or SCTP) has taken it. In StateIdle it waits for a
// connection, until the context or the QP ends, as the other calls here do; PostSend queues the request and returns.
//
// If the context ends before that, the error of this and the other calls here is a
// *PendingError. If it is over beforehand, nothing is posted.
func (qp *QP) Send(ctx context.Context, s SGE) error {
	_, err := qp.do(ctx, s, SendWR{Op: OpSend})
	return err
}

// Write places the octets of s in the peer's memory and returns how many when
// what is below has taken them. The peer is not told; send it a message for that.
func (qp *QP) Write(ctx context.Context, s SGE, to Remote) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpWrite, Remote: to})
	return wc.Length, err
}

// Read fetches s.Length octets of the peer's memory into s and returns how many
// when they are there.
func (qp *QP) Read(ctx context.Context, s SGE, from Remote) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpRead, Remote: from})
	return wc.Length, err
}

// Recv posts a receive and waits for the message, whose length is in the WC. A
// message that comes before this call, or between two, finds no receive, and ends the
// connection, unless QPConfig.Unready has it wait. That may befall also those who take strict turns: the
// answer to a Send may be here before Recv is called.
//
// So where QPConfig.Unready is not set, post several receives with PostRecv before the connection
// is up (Prepare), take the messages with CQ.Next, whose context may have a deadline, and
// post each receive again when its message has been dealt with.
//
// If the context ends first, the receive is taken back. If a message has begun to fill it
// by then, the error is a *PendingError, and the message is kept for the next Recv, which
// returns it before any later one: until the QP is made ready for another connection, or has one.
func (qp *QP) Recv(ctx context.Context, s SGE) (WC, error) {
	if err := ctx.Err(); err != nil {
		return WC{}, &OpError{Op: "receive", Err: err}
	}
	if c := qp.takeOrphan(); c != nil {
		return c.adopt(ctx, s)
	}
	c := qp.newCall(s)
	c.recv = RecvWR{SGL: c.sgl[:]}
	if err := qp.postRecv(&c.recv, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx, OpRecv)
}

// A PendingError is the error of a Send, Recv, Write, Read or another such call whose context has ended
// while its request was under way. The request is still carried out, and its memory
// belongs to the QP until then.
type PendingError struct {
	Op Op
	// Free is closed when the request is complete, one way or the other: the memory is
	// the caller's again.
	Free <-chan struct{}
	// Err is the context's error. It wraps ErrAwaitingInitiator too if nothing of the
	// request was sent because of that.
	Err error
}

// Error says what was given up, and why.
func (e *PendingError) Error() string {
	return fmt.Sprintf("iwarp: %v given up, and still under way: %v", e.Op, e.Err)
}

// Unwrap returns the context's error.
func (e *PendingError) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline has passed.
func (e *PendingError) Timeout() bool { return isTimeout(e.Err) }

// do posts a request, with s as its memory if it has any, and waits for its completion, which
// does not go to the CQ.
func (qp *QP) do(ctx context.Context, s SGE, wr SendWR) (WC, error) {
	if err := ctx.Err(); err != nil {
		return WC{}, &OpError{Op: wr.Op.call(), Err: err}
	}
	c := qp.newCall(s)
	c.send = wr
	if !wr.Op.atomic() {
		c.send.SGL = c.sgl[:]
	}
	if err := qp.postSend(&c.send, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx, wr.Op)
}

// call is a one-call form that waits for its completion, with the memory of its
// request: nothing is allocated for a call.
type call struct {
	qp   *QP
	done chan WC
	sgl  [1]SGE
	send SendWR
	recv RecvWR

	leader *tcp.Conn // that the caller receives on; nil: it does not. Guarded by qp.mu

	// Of a call that was given up, guarded by qp.mu.
	given   chan struct{} // closed when the request is complete; nil: not given up
	among   *orphans      // those of its connection; nil: not a receive
	wc      WC            // its completion
	message []byte        // of a receive
}

// newCall takes a call from the pool of the RNIC. It is not one for all: in a
// testing/synctest bubble a channel must not be one from another.
func (qp *QP) newCall(s SGE) *call {
	c, ok := qp.rnic.calls.Get().(*call)
	if !ok {
		c = &call{done: make(chan WC, 1)}
	}
	c.qp, c.sgl[0] = qp, s
	return c
}

func (c *call) free() {
	pool := &c.qp.rnic.calls
	c.qp, c.sgl[0], c.send, c.recv = nil, SGE{}, SendWR{}, RecvWR{}
	pool.Put(c)
}

// await waits for the completion, or gives up with the context.
func (c *call) await(ctx context.Context, op Op) (WC, error) {
	if len(c.done) == 0 {
		c.qp.leadFor(ctx, c)
	}
	if len(c.done) == 0 {
		c.qp.callers.Add(1)
		defer c.qp.callers.Add(-1)
		c.qp.lookOut()
	}
	select {
	case wc := <-c.done:
		return c.completed(wc)
	case <-ctx.Done():
	}
	if err := c.giveUp(op, ctx.Err()); err != nil {
		return WC{}, err
	}
	return c.completed(<-c.done)
}

func (c *call) completed(wc WC) (WC, error) {
	c.free()
	return wc, wc.Err()
}

// giveUp takes back the receive, or says that the request goes on. It returns nil if the
// completion is there.
func (c *call) giveUp(op Op, err error) error {
	qp := c.qp
	qp.mu.Lock()
	defer qp.unlock()
	switch {
	case len(c.done) > 0:
		return nil
	case op == OpRecv && qp.eng.TakeBackReceive(c):
		c.free()
		return &OpError{Op: "receive", Err: fmt.Errorf("%s: %w", qp.lacksMessage(), err)}
	case op == OpRecv:
		qp.adoptable(c)
	case qp.eng.Mute():
		err = fmt.Errorf("%w: %w", engine.ErrMute, err)
	case qp.eng.State() == engine.Idle:
		err = fmt.Errorf("the QP waits for a connection: %w", err)
	}
	c.given = make(chan struct{})
	return &PendingError{Op: op, Free: c.given, Err: err}
}

// lacksMessage says why a receive has got none. The caller holds qp.mu.
func (qp *QP) lacksMessage() string {
	if qp.eng.State() == engine.Idle {
		return "the QP has no connection, by which a message could come"
	}
	return "no message has come"
}

// complete takes the completion. The caller holds qp.mu.
func (c *call) complete(wc WC) {
	if c.given == nil {
		qp, leader := c.qp, c.leader
		c.done <- wc // and c is its caller's
		qp.lead.offer = true
		if leader != nil {
			leader.Interrupt()
		}
		return
	}
	switch c.wc = wc; {
	case wc.Op != OpRecv:
	case wc.Status == StatusSuccess:
		c.keep()
	default: // there is no message to be kept
		c.among.calls = slices.DeleteFunc(c.among.calls, func(o *call) bool { return o == c })
	}
	close(c.given)
}

// keep copies the message of a receive that was given up, whose memory is the caller's
// from now on.
func (c *call) keep() {
	s := &c.sgl[0]
	if s.MR != nil {
		c.message = make([]byte, c.wc.Length)
		_, _ = s.MR.region.ReadAt(c.message, s.Offset)
	}
}

// orphans are the receives of one connection that were given up with a message in them, the oldest first. A QP
// that is connected again has others: nobody is to get a message for one from the new peer.
type orphans struct{ calls []*call } // guarded by QP.mu

// adoptable keeps a receive that is given up for the next Recv. The caller holds qp.mu.
func (qp *QP) adoptable(c *call) {
	if qp.orphans == nil {
		qp.orphans = new(orphans)
	}
	c.among = qp.orphans
	c.among.calls = append(c.among.calls, c)
}

// takeOrphan returns the oldest receive that was given up with a message in it.
func (qp *QP) takeOrphan() *call {
	qp.mu.Lock()
	defer qp.unlock()
	if qp.orphans == nil || len(qp.orphans.calls) == 0 {
		return nil
	}
	c := qp.orphans.calls[0]
	qp.orphans.calls = slices.Delete(qp.orphans.calls, 0, 1)
	return c
}

// returnOrphan puts a receive back that still waits to be taken.
func (qp *QP) returnOrphan(c *call) {
	qp.mu.Lock()
	defer qp.unlock()
	c.among.calls = slices.Insert(c.among.calls, 0, c)
}

// adopt waits for the message of a receive that was given up, and copies it to s.
func (c *call) adopt(ctx context.Context, s SGE) (WC, error) {
	select {
	case <-c.given:
	case <-ctx.Done():
		c.qp.returnOrphan(c)
		return WC{}, &OpError{Op: "receive", Err: ctx.Err()}
	}
	if err := c.wc.Err(); err != nil {
		return c.wc, err
	}
	if err := c.copyTo(s); err != nil {
		c.qp.returnOrphan(c)
		return WC{}, &OpError{Op: "receive", Err: err}
	}
	return c.wc, nil
}

func (c *call) copyTo(s SGE) error {
	if len(c.message) > s.Length {
		return fmt.Errorf("%w: the message kept has %s and does not fit %d: give it more", ErrInvalid, wording.Octets(len(c.message)), s.Length)
	}
	if err := (judge{pd: c.qp.pd}).check(&s, true); err != nil {
		return err
	}
	if len(c.message) == 0 {
		return nil
	}
	switch f := s.MR.region.WriteAt(c.message, s.Offset); f {
	case memory.None:
		return nil
	case memory.Bounds:
		return fmt.Errorf("%w: %s", ErrInvalid, s.mistake(f))
	default:
		return s.MR.lost(f)
	}
}
