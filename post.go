package iwarp

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/wording"
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
	return qp.postSend(wr, nil)
}

func (qp *QP) postSend(wr *SendWR, cookie any) error {
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.queueSend(wr, cookie); err != nil {
		op := "post send"
		if cookie != nil { // QP.Send, Write or Read
			op = wr.Op.call()
		}
		return &OpError{Op: op, Err: err}
	}
	if cookie != nil { // its caller waits for it
		qp.pushOwnUnlocking(qp.now(), qp.eng.Posted())
		return nil
	}
	qp.pushPostedUnlocking(1, wr.size(), time.Time{})
	return nil
}

func (qp *QP) queueSend(wr *SendWR, cookie any) error {
	if err := qp.ended(); err != nil {
		return err
	}
	if err := wr.check(qp); err != nil {
		return err
	}
	if len(wr.Inline) > qp.cfg.MaxInline {
		return fmt.Errorf("%w: %s of inline data; the QP takes %d at most (QPConfig.MaxInline)", ErrInvalid, wording.Octets(len(wr.Inline)), qp.cfg.MaxInline)
	}
	// The copy is for the compiler: nothing that wr refers to escapes, so that a
	// request written out in the call costs no allocation.
	p := qp.posting()
	p.inline = append(p.inline[:0], wr.Inline...)
	work := &p.send
	wr.engine(work, p.inline)
	if n, _ := qp.eng.Outstanding(); qp.alive() && n+int(qp.unpolledSends.Load()) >= qp.cfg.SendDepth {
		return ErrQueueFull
	}
	work.Cookie = cookie
	if wr.Op == OpBindMW || wr.Op == OpFastRegister {
		return refused(qp.postLocal(work, wr))
	}
	return refused(qp.eng.PostSend(work))
}

// A posting is scratch for what is posted. Connections on which nothing was posted for some time have none.
type posting struct {
	send   engine.SendWork
	recv   engine.RecvWork
	inline []byte
	local  *localWork // of local operations; nil: there was none
	used   bool       // since the last trim
}

// posting returns the QP's. The caller holds qp.mu.
func (qp *QP) posting() *posting {
	if qp.posts == nil {
		qp.posts = new(posting)
		qp.slacken()
	}
	qp.posts.used = true
	return qp.posts
}

// alive reports whether the engine would take work: otherwise it says why not.
func (qp *QP) alive() bool {
	s := qp.eng.State()
	return s == engine.Idle || s == engine.RTS
}

// PostSends appends requests in order and sends them together: in one system call
// where they fit, and with those of other lists that follow each other as posts do (see PostSend). It stops at the first that cannot be posted, and returns how
// many were; the error is about wrs[n].
func (qp *QP) PostSends(wrs []SendWR) (n int, err error) {
	qp.mu.Lock()
	defer qp.unlock()
	began, size := qp.now(), 0 // a long list takes longer to queue than a burst rests
	for n < len(wrs) && err == nil {
		if err = qp.queueSend(&wrs[n], nil); err == nil {
			size += wrs[n].size()
			n++
		}
	}
	if n > 0 {
		qp.pushPostedUnlocking(n, size, began)
	}
	if err != nil {
		return n, &OpError{Op: "post send", Err: err}
	}
	return n, nil
}

// PostAll is PostSends for requests that belong together: it appends all of them, or none. The error is about the first that cannot be posted.
func (qp *QP) PostAll(wrs []SendWR) error {
	qp.mu.Lock()
	defer qp.unlock()
	from := qp.eng.Posted()
	for i := range wrs {
		if err := qp.queueSend(&wrs[i], nil); err != nil {
			qp.eng.TakeBackSends(from)
			return &OpError{Op: "post send", Err: fmt.Errorf("request %d of %d, of which none is posted: %w", i+1, len(wrs), err)}
		}
	}
	qp.pushOwnUnlocking(qp.now(), qp.eng.Posted())
	return nil
}

// PostRecv appends a receive to the Receive Queue. Post receives before the peer sends: a
// Send that finds none ends the connection, as the RFCs require, unless QPConfig.Unready has it wait.
//
// When the peer has closed its half nothing more can come, and the error says so; messages
// that were delivered before may still be in the CQ.
func (qp *QP) PostRecv(wr *RecvWR) error {
	return qp.postRecv(wr, nil)
}

func (qp *QP) postRecv(wr *RecvWR, cookie any) error {
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.queueRecv(wr, cookie); err != nil {
		op := "post receive"
		if cookie != nil { // QP.Recv
			op = "receive"
		}
		return &OpError{Op: op, Err: err}
	}
	qp.readyUnlocking()
	return nil
}

func (qp *QP) queueRecv(wr *RecvWR, cookie any) error {
	if err := qp.ended(); err != nil {
		return err
	}
	if qp.cfg.SRQ != nil {
		return fmt.Errorf("%w: the QP takes its receives from a Shared Receive Queue, post to that (QPConfig.SRQ)", ErrInvalid)
	}
	work := &qp.posting().recv
	if err := wr.engine(work, qp.judge()); err != nil {
		return err
	}
	if _, n := qp.eng.Outstanding(); qp.alive() && n+int(qp.unpolledRecvs.Load()) >= qp.cfg.RecvDepth {
		return ErrQueueFull
	}
	work.Cookie = cookie
	return refused(qp.eng.PostReceive(work))
}
