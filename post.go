package iwarp

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/internal/engine"
)

// PostSend appends a request to the Send Queue and, if nothing is in its way,
// sends it at once, in the calling goroutine. It does not wait: what the socket
// does not take is sent later. In StateIdle requests wait for the connection.
func (qp *QP) PostSend(wr *SendWR) error {
	return qp.postSend(wr, nil)
}

func (qp *QP) postSend(wr *SendWR, cookie any) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.queueSend(wr, cookie); err != nil {
		return &OpError{Op: "post send", Err: err}
	}
	qp.push()
	return nil
}

func (qp *QP) queueSend(wr *SendWR, cookie any) error {
	if err := qp.open(); err != nil {
		return err
	}
	if len(wr.Inline) > qp.cfg.MaxInline {
		return engine.ErrInline
	}
	// The copy is for the compiler: nothing that wr refers to escapes, so that a
	// request written out in the call costs no allocation.
	qp.inline = append(qp.inline[:0], wr.Inline...)
	if err := wr.engine(&qp.sendWork, qp.inline); err != nil {
		return err
	}
	if n, _ := qp.eng.Outstanding(); qp.alive() && n+int(qp.unpolledSends.Load()) >= qp.cfg.SendDepth {
		return ErrQueueFull
	}
	qp.sendWork.Cookie = cookie
	return qp.eng.PostSend(&qp.sendWork)
}

// open refuses work for a QP whose connection has ended in order: it would wait
// for ever.
func (qp *QP) open() error {
	if qp.closedLLP && qp.eng.State() == engine.Idle {
		return fmt.Errorf("the connection is over, after Modify(StateIdle) the QP can have another: %w", ErrClosed)
	}
	return nil
}

// alive reports whether the engine would take work: otherwise it says why not.
func (qp *QP) alive() bool {
	s := qp.eng.State()
	return s == engine.Idle || s == engine.RTS
}

// PostSends appends requests in order and sends them together: in one system call
// where they fit. It stops at the first that cannot be posted, and returns how
// many were; the error is about wrs[n].
func (qp *QP) PostSends(wrs []SendWR) (n int, err error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	defer qp.push()
	for n < len(wrs) {
		if err := qp.queueSend(&wrs[n], nil); err != nil {
			return n, &OpError{Op: "post send", Err: err}
		}
		n++
	}
	return n, nil
}

// PostRecv appends a receive to the Receive Queue. Post them before the peer
// sends: a Send that finds none ends the connection, as the RFCs want it.
func (qp *QP) PostRecv(wr *RecvWR) error {
	return qp.postRecv(wr, nil)
}

func (qp *QP) postRecv(wr *RecvWR, cookie any) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.queueRecv(wr, cookie); err != nil {
		return &OpError{Op: "post receive", Err: err}
	}
	return nil
}

func (qp *QP) queueRecv(wr *RecvWR, cookie any) error {
	if err := qp.open(); err != nil {
		return err
	}
	if err := wr.engine(&qp.recvWork); err != nil {
		return err
	}
	if _, n := qp.eng.Outstanding(); qp.cfg.SRQ == nil && qp.alive() && n+int(qp.unpolledRecvs.Load()) >= qp.cfg.RecvDepth {
		return ErrQueueFull
	}
	qp.recvWork.Cookie = cookie
	return qp.eng.PostReceive(&qp.recvWork)
}

// call is a one-call form that waits for its completion, with the memory of its
// request: nothing is allocated for a call.
type call struct {
	qp   *QP
	done chan WC
	sgl  [1]SGE
	send SendWR
	recv RecvWR
}

// newCall takes a call from the QP's own pool: in a testing/synctest bubble a
// channel must not be one from outside.
func (qp *QP) newCall(s SGE) *call {
	c, ok := qp.calls.Get().(*call)
	if !ok {
		c = &call{qp: qp, done: make(chan WC, 1)}
	}
	c.sgl[0] = s
	return c
}

func (c *call) free() {
	c.sgl[0], c.send, c.recv = SGE{}, SendWR{}, RecvWR{}
	c.qp.calls.Put(c)
}

// await waits for the completion. If the context ends first, the request is
// still carried out and its memory still belongs to the QP.
func (c *call) await(ctx context.Context) (WC, error) {
	select {
	case wc := <-c.done:
		return c.completed(wc)
	case <-ctx.Done():
	}
	select {
	case wc := <-c.done: // both at once
		return c.completed(wc)
	default:
		return WC{}, ctx.Err() // c is the completion's for ever
	}
}

func (c *call) completed(wc WC) (WC, error) {
	c.free()
	return wc, wc.Err()
}

// do posts a request and waits for its completion, which does not go to the CQ.
func (qp *QP) do(ctx context.Context, op Op, s SGE, r Remote) (WC, error) {
	c := qp.newCall(s)
	c.send = SendWR{Op: op, SGL: c.sgl[:], Remote: r}
	if err := qp.postSend(&c.send, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx)
}

// Send sends one message and returns when TCP has taken it.
func (qp *QP) Send(ctx context.Context, s SGE) error {
	_, err := qp.do(ctx, OpSend, s, Remote{})
	return err
}

// Write places the octets of s in the peer's memory and returns how many when
// TCP has taken them. The peer is not told; send it a message for that.
func (qp *QP) Write(ctx context.Context, s SGE, to Remote) (int, error) {
	wc, err := qp.do(ctx, OpWrite, s, to)
	return wc.Length, err
}

// Read fetches s.Length octets of the peer's memory into s and returns how many
// when they are there.
func (qp *QP) Read(ctx context.Context, s SGE, from Remote) (int, error) {
	wc, err := qp.do(ctx, OpRead, s, from)
	return wc.Length, err
}

// Recv posts a receive and waits for the message, whose length is in the WC. A
// peer may send before this call: then post receives beforehand instead.
func (qp *QP) Recv(ctx context.Context, s SGE) (WC, error) {
	c := qp.newCall(s)
	c.recv = RecvWR{SGL: c.sgl[:]}
	if err := qp.postRecv(&c.recv, c); err != nil {
		c.free()
		return WC{}, err
	}
	return c.await(ctx)
}
