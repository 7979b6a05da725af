package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
)

// PostSend appends a request to the Send Queue and, if nothing is in its way,
// sends it at once, in the calling goroutine. It does not wait: what the socket
// does not take is sent later. In StateIdle requests wait for the connection.
//
// Posts that follow each other within a few microseconds are sent together, in far fewer
// system calls: after the first of them, PostSend only queues the request. It is sent with
// those after it, or by a goroutine of the QP's as soon as that runs.
//
// PostSend does its own work in the calling goroutine, and a bounded share of what others
// have posted at the same time. A Responder's requests wait for the Initiator's first
// FPDU where that is not peer-to-peer: see Request and ErrAwaitingInitiator.
func (qp *QP) PostSend(wr *SendWR) error {
	if err := qp.made(); err != nil {
		return err
	}
	if err := qp.postSend(wr, nil); err != nil {
		return &OpError{Op: "post send", Err: refused(err)}
	}
	return nil
}

// postSend posts a request. With a cookie, somebody waits for it: QP.Send, Write or Read.
func (qp *QP) postSend(wr *SendWR, cookie *call) error {
	if err := wr.check(qp); err != nil {
		return qp.firstEnded(err)
	}
	return qp.postChecked(wr, cookie)
}

func (qp *QP) postChecked(wr *SendWR, cookie *call) error {
	var work engine.SendWork
	if cookie != nil {
		work.Cookie = cookie
	}
	if len(wr.Inline) == 0 && wr.Bind == nil && wr.Register == nil {
		wr.engine(&work, nil)
		return qp.post(&work, wr.size(), cookie != nil)
	}
	p := qp.rnic.posting()
	defer func() { qp.rnic.postings.Put(p.reset()) }()
	p.translate(wr, &work)
	return qp.post(&work, wr.size(), cookie != nil)
}

// post posts to the connection, or for the one to come.
func (qp *QP) post(w *engine.SendWork, size int, waits bool) error {
	for {
		var err error
		if c := qp.conn.Load(); c != nil {
			err = unlessMoved(qp, c, c.PostSend(w, size, waits))
		} else {
			err = postIdle(qp, func(q driver.Queues) error { return q.PostSend(w) })
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

// errMoved: the QP has another connection by now, or none. What was not posted is to be posted there.
var errMoved = errors.New("the QP has another connection, or none")

// unlessMoved is what a post to a connection returns. Where that takes no more work, and is still the QP's, the error
// says how it ends.
func unlessMoved(qp *QP, c *driver.Conn, err error) error {
	if err == nil || !errors.Is(err, driver.ErrEnded) {
		return err
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.conn.Load() != c {
		return errMoved
	}
	return qp.endedError()
}

// postIdle posts to the queues of a QP without a connection.
func postIdle(qp *QP, post func(driver.Queues) error) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch {
	case qp.conn.Load() != nil: // it has just come up
		return errMoved
	case qp.machine == nil:
		return qp.endedError()
	}
	return post(driver.Queues{
		Machine: qp.machine, SendDepth: qp.cfg.SendDepth, RecvDepth: qp.cfg.RecvDepth, Unpolled: &qp.unpolled,
	})
}

// A posting is memory for the translation of requests, and for what they refer to. It comes from a pool.
type posting struct {
	inline []byte            // of all of them
	list   []engine.SendWork // of PostSends
	local  *localWork        // for a local operation; nil: none was posted, or it is in use
	used   *localWork
}

// posting takes a posting from the pool of the RNIC.
func (r *RNIC) posting() *posting {
	if p, ok := r.postings.Get().(*posting); ok {
		return p
	}
	return new(posting)
}

// reset drops all references to what was posted.
func (p *posting) reset() *posting {
	clear(p.list)
	p.inline, p.list = p.inline[:0], p.list[:0]
	if p.used != nil {
		*p.used = localWork{}
		p.local, p.used = p.used, nil
	}
	return p
}

// translate puts a request that was checked in the engine's words. The copies are for the compiler: nothing that wr
// refers to escapes, so that a request written out in the call costs no allocation.
func (p *posting) translate(wr *SendWR, dst *engine.SendWork) {
	from := len(p.inline)
	p.inline = append(p.inline, wr.Inline...)
	wr.engine(dst, p.inline[from:])
	if wr.Op == OpBindMW || wr.Op == OpFastRegister {
		p.translateLocal(wr, dst)
	}
}

// firstEnded returns why the QP takes no requests any more, or err if it takes some: the end comes before a mistake.
func (qp *QP) firstEnded(err error) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return cmp.Or(qp.endedError(), err)
}

// PostSends appends requests in order and sends them together: in one system call where they fit, and with those of
// other lists that follow each other as posts do (see PostSend). It stops at the first that cannot be posted, and
// returns how many were; the error is about wrs[n].
func (qp *QP) PostSends(wrs []SendWR) (n int, err error) {
	if err := qp.made(); err != nil {
		return 0, err
	}
	began := qp.rnic.now() // a long list takes longer to queue than a burst rests
	p := qp.rnic.posting()
	size, wrong := p.translateAll(qp, wrs)
	n, err = qp.postList(p.list, size, began, false)
	qp.rnic.postings.Put(p.reset())
	if err = cmp.Or(err, wrong); err != nil {
		return n, &OpError{Op: "post send", Err: refused(err)}
	}
	return n, nil
}

// translateAll translates requests up to the first that is wrong, and returns how many bytes they send.
func (p *posting) translateAll(qp *QP, wrs []SendWR) (size int, err error) {
	for i := range wrs {
		if err := wrs[i].check(qp); err != nil {
			return size, qp.firstEnded(err)
		}
		p.list = append(p.list, engine.SendWork{})
		p.translate(&wrs[i], &p.list[i])
		size += wrs[i].size()
	}
	return size, nil
}

// postList posts a list to the connection, or for the one to come; with whole, all of it or nothing.
func (qp *QP) postList(list []engine.SendWork, size int, began time.Time, whole bool) (n int, err error) {
	for {
		if c := qp.conn.Load(); c != nil {
			n, err = c.PostSends(list, size, began, whole)
			err = unlessMoved(qp, c, err)
		} else {
			err = postIdle(qp, func(q driver.Queues) (err error) {
				n, err = q.PostSends(list, whole)
				return err
			})
		}
		if !errors.Is(err, errMoved) {
			return n, err
		}
	}
}

// PostRecv appends a receive to the Receive Queue. Post receives before the peer sends: a
// Send that finds none ends the connection, as the RFCs require, unless QPConfig.RNR has it wait.
//
// When the peer has closed its half nothing more can come, and the error says so; messages
// that were delivered before may still be in the CQ.
func (qp *QP) PostRecv(wr *RecvWR) error {
	if err := qp.made(); err != nil {
		return err
	}
	return qp.postRecv(wr, nil)
}

// PostRecvs appends receives in order. It stops at the first that cannot be posted, and
// returns how many were; the error is about wrs[n].
func (qp *QP) PostRecvs(wrs []RecvWR) (n int, err error) { return postAll(wrs, qp.PostRecv) }

// postAll posts one by one. Others may post between, as each receive stands for itself.
func postAll(wrs []RecvWR, post func(*RecvWR) error) (n int, err error) {
	for n < len(wrs) {
		if err := post(&wrs[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// postRecv posts a receive. With a cookie, QP.Recv waits for it.
func (qp *QP) postRecv(wr *RecvWR, cookie *call) error {
	var w engine.RecvWork
	err := translateRecv(qp, wr, &w)
	if err == nil {
		if cookie != nil {
			w.Cookie = cookie
		}
		err = qp.postReceive(&w)
	}
	if err == nil {
		return nil
	}
	op := "post receive"
	if cookie != nil {
		op = "receive"
	}
	return &OpError{Op: op, Err: refused(err)}
}

func translateRecv(qp *QP, wr *RecvWR, to *engine.RecvWork) error {
	if qp.inbox != nil {
		return qp.firstEnded(fmt.Errorf("%w: the QP posts its receives itself (QPConfig.Receives): call Receive", ErrInvalid))
	}
	if qp.cfg.SRQ != nil {
		return qp.firstEnded(fmt.Errorf("%w: the QP takes its receives from a Shared Receive Queue, post to that "+
			"(QPConfig.SRQ)", ErrInvalid))
	}
	if err := wr.engine(to, validatorFor(qp)); err != nil {
		return qp.firstEnded(err)
	}
	return nil
}

func (qp *QP) postReceive(w *engine.RecvWork) error {
	for {
		var err error
		if c := qp.conn.Load(); c != nil {
			err = unlessMoved(qp, c, c.PostReceive(w))
		} else {
			err = postIdle(qp, func(q driver.Queues) error { return q.PostReceive(w) })
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

// Masks narrow an Atomic Operation to bits of the word (RFC 7306, section 5.1).
type Masks struct {
	// Add is for an OpFetchAdd: each bit that is set is the most significant one of a field, and each field is added by
	// itself, without a carry from one into the next. 0 is one field of 64 bits.
	Add uint64
	// Compare and Swap are for an OpCompareSwap: the bits that are compared, and those that are replaced if these are
	// equal. With a Compare of 0 they always are.
	Compare, Swap uint64
}

// FetchAdd adds to the word of AtomicLen bytes at a place in the peer's memory, which needs
// RemoteAtomic there, and returns what the word was before. The sum wraps at 64 bits.
//
// The word is an integer in the byte order of the peer's machine. No Atomic Operation of another
// QP of the peer's RNIC comes in between. Where the peer is this package, no operation of
// sync/atomic by its program does either: see docs/memory.md. A peer that does not know RFC 7306,
// as most RNICs do not, ends the connection; adding 0 is a way to find out.
func (qp *QP) FetchAdd(ctx context.Context, at Remote, add uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SGE{}, SendWR{Op: OpFetchAdd, Remote: at, Add: add})
	return wc.Original, err
}

// CompareSwap replaces the word at a place in the peer's memory by swap if it is compare, and
// returns what it was before: it was replaced if that is compare. All else is as with FetchAdd.
func (qp *QP) CompareSwap(ctx context.Context, at Remote, compare, swap uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SGE{}, SendWR{Op: OpCompareSwap, Remote: at, Compare: compare, Swap: swap})
	return wc.Original, err
}

// WriteImm is Write, and tells the peer: the Write completes one of its receives, with the
// Immediate Data in the completion, and the memory of the receive stays as it is. On the
// wire it is an RDMA Write and an Immediate Data message directly after it (RFC 7306, section
// 6). A peer that does not know RFC 7306 ends the connection.
func (qp *QP) WriteImm(ctx context.Context, s SGE, to Remote, immediate uint64) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpWriteImm, Remote: to, Immediate: immediate})
	return wc.Length, err
}

// atomic reports whether the operation works on one word of the peer's.
func (o Op) atomic() bool { return engine.Op(o).Info().Result != 0 }

// atomicWork returns the request of an Atomic Operation as the engine has it.
func (w *SendWR) atomicWork() (a engine.Atomic) {
	switch w.Op {
	case OpFetchAdd:
		a.Data = w.Add
		if w.Masks != nil {
			a.Mask = w.Masks.Add
		}
	case OpCompareSwap:
		a = engine.Atomic{Data: w.Swap, Mask: math.MaxUint64, Compare: w.Compare, CompareMask: math.MaxUint64}
		if w.Masks != nil {
			a.Mask, a.CompareMask = w.Masks.Swap, w.Masks.Compare
		}
	}
	return a
}
