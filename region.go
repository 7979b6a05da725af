package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A Region is memory of a peer: where it begins, and how many bytes it has. [MR.Region] makes one, its wire form tells
// the peer of it, and [QP.At] reads and writes it there. What leaves a Region is found here, before anything is sent:
// the peer would end the connection.
type Region struct {
	Remote Remote
	Len    int
}

// Region returns all of the memory, as a peer names it: for an MR of AllocMR, that of its last registration. It is zero
// while the MR is not [MR.Valid]: before the first registration, and after Deregister.
func (m *MR) Region() Region {
	if !m.Valid() {
		return Region{}
	}
	return Region{Remote: m.Remote(0), Len: m.Len()}
}

// Slice returns n bytes from offset off on. The error wraps ErrInvalid if the Region does not have them, or is zero.
func (r Region) Slice(off, n int) (Region, error) {
	err := r.check()
	if err == nil && (off < 0 || n < 0 || n > r.Len-off) {
		err = r.lacks(n, int64(off))
	}
	if err != nil {
		return Region{}, &OpError{Op: "slice a Region", Err: err}
	}
	return Region{Remote: r.Remote.Add(off), Len: n}, nil
}

// lacks is the error of an access that leaves the Region.
func (r Region) lacks(n int, off int64) error {
	return fmt.Errorf("%w: %s at offset %d of a Region of %d", ErrInvalid, wording.Count(n, "byte"), off, r.Len)
}

// check refuses what no MR has as its Region.
func (r Region) check() error {
	switch {
	case r.Remote == Remote{}:
		return fmt.Errorf("%w: the Region is zero: the peer has to tell of its memory (MR.Region) before it is reached",
			ErrInvalid)
	case r.Len < 0 || ddp.Wraps(r.Remote.TO, uint64(r.Len)):
		return fmt.Errorf("%w: a Region of %d bytes at TO %#x", ErrInvalid, r.Len, r.Remote.TO)
	}
	return nil
}

// A RemoteMemory reads and writes a Region of the peer's, see [QP.At]. It is an io.ReaderAt and an io.WriterAt, and any
// number of goroutines may use it.
type RemoteMemory struct {
	qp     *QP
	ctx    context.Context // of all calls but Flush
	region Region
}

// At returns a Region of the peer's as an [io.ReaderAt] and [io.WriterAt], by RDMA Reads and Writes on the QP. All
// calls but Flush end with the context. When a call has returned, the QP does not reach the memory that it was given
// any more, also where the context has ended.
//
// The QP registers that memory while it uses it. Toward Limits that counts as up to 16 MRs of 256 KiB, until the QP is
// closed. More than 256 KiB go in parts, up to 16 at a time. No more parts are under way than the Send Queue holds, nor
// more Reads than the ORD. Parts are no unit: what others write meanwhile may be in one and not in the next.
func (qp *QP) At(ctx context.Context, r Region) *RemoteMemory { return &RemoteMemory{qp, ctx, r} }

// Len returns the length of the Region, in bytes.
func (m *RemoteMemory) Len() int {
	if m == nil {
		return 0
	}
	return m.region.Len
}

// Size is Len, as [io.NewSectionReader] takes it.
func (m *RemoteMemory) Size() int64 { return int64(m.Len()) }

// ReadAt reads len(p) bytes at offset off, and returns when they are there. Where the Region ends first the error is
// io.EOF. Any other error says which call has failed, as those of [QP.Read] do. It wraps ErrNoReads if the ORD is 0,
// and ErrClosed if the connection has ended; if the peer has closed it, io.ErrUnexpectedEOF too, and not io.EOF. n
// bytes were read before it.
func (m *RemoteMemory) ReadAt(p []byte, off int64) (n int, err error) {
	whole := len(p)
	if err := m.check(OpRead, off); err != nil {
		return 0, err
	}
	p = p[:min(int64(whole), max(m.Size()-off, 0))]
	if n, err = m.move(OpRead, p, off); err == nil && n < whole {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes p at offset off. It returns when p may be reused. Flush waits until the bytes are placed. The error
// wraps ErrInvalid where the Region has no such bytes, and then nothing is written. Any other error is as with ReadAt,
// and n bytes were sent before it.
func (m *RemoteMemory) WriteAt(p []byte, off int64) (n int, err error) {
	if err := m.check(OpWrite, off); err != nil {
		return 0, err
	}
	if int64(len(p)) > m.Size()-off {
		return 0, &OpError{Op: OpWrite.call(), Err: m.region.lacks(len(p), off)}
	}
	return m.move(OpWrite, p, off)
}

// Flush returns when all Writes of the QP before it are placed in the peer's memory. It is an RDMA Read of no bytes,
// which the peer answers after them (RFC 5040, section 5.5), and which needs no right. Where the peer has refused a
// Write, the error wraps its *TerminateError. It wraps ErrNoReads if the ORD is 0, and ErrHeldBack if the answer is
// behind unread messages.
func (m *RemoteMemory) Flush(ctx context.Context) error {
	if err := m.check(OpRead, 0); err != nil {
		return err
	}
	_, err := m.qp.do(ctx, SGE{}, SendWR{Op: OpRead, Remote: m.region.Remote})
	if pending := pendingIn(err); pending != nil { // of no memory
		err = pending.Err
	}
	if err != nil {
		err = &OpError{Op: "flush", Err: err}
	}
	return err
}

func (m *RemoteMemory) check(op Op, off int64) error {
	if m == nil {
		return errNotMade("RemoteMemory", "QP.At makes one")
	}
	if err := m.qp.made(); err != nil {
		return err
	}
	err := m.region.check()
	if err == nil && off < 0 {
		err = fmt.Errorf("%w: offset %d", ErrInvalid, off)
	}
	if err != nil {
		return &OpError{Op: op.call(), Err: err}
	}
	return nil
}

// move reads or writes p, and returns how many of its bytes were, without a gap.
func (m *RemoteMemory) move(op Op, p []byte, off int64) (n int, err error) {
	t := transfer{qp: m.qp, ctx: m.ctx, op: op, mrs: fastMRsOf(m.qp), most: 1}
	if len(p) > fastMRLen {
		t.most = t.window()
	}
	for at := m.region.Remote.Add(int(off)); len(p) > 0 && err == nil; {
		k := min(len(p), fastMRLen)
		err = t.begin(p[:k], at)
		p, at = p[k:], at.Add(k)
	}
	for err == nil && t.underWay() > 0 {
		err = t.finish()
	}
	t.giveUp(err)
	if errors.Is(err, io.EOF) {
		err = cutOff{err}
	}
	return t.moved, err
}

// A transfer is one that goes in parts.
type transfer struct {
	qp  *QP
	ctx context.Context
	op  Op
	mrs *fastMRs

	parts        [maxFastMRs]transferPart // a ring
	begun, ended int                      // how many
	most         int                      // may be under way
	moved        int                      // bytes of those that have ended, up to the first that failed
	err          error                    // of that
}

// A transferPart is one request of it.
type transferPart struct {
	c  *call
	mr *MR
	n  int
}

func (t *transfer) underWay() int { return t.begun - t.ended }

// window returns how many parts may be under way. More Reads than the ORD would hold up what others post.
func (t *transfer) window() int {
	n := min(maxFastMRs, t.qp.cfg.SendDepth)
	if t.op == OpRead {
		t.qp.mu.Lock()
		defer t.qp.mu.Unlock()
		n = min(n, max(t.qp.figures().Params.ORD, 1))
	}
	return n
}

// begin posts a request, and waits for the first of those before where that has to be.
func (t *transfer) begin(p []byte, at Remote) error {
	for t.underWay() == t.most {
		if err := t.finish(); err != nil {
			return err
		}
	}
	if err := contextError(t.ctx); err != nil {
		return t.failed(err)
	}
	mr, err := t.take()
	if err != nil {
		return err
	}
	if err := t.mrs.register(mr, p); err != nil {
		return t.failed(t.qp.firstEnded(err))
	}
	c := newCall(t.qp, mr.Slice(0, len(p)))
	c.send = SendWR{Op: t.op, Remote: at, SGL: c.sgl[:]}
	if err := t.qp.room.post(t.ctx, &c.send, c); err != nil {
		c.free()
		t.mrs.invalidate(mr)
		return err
	}
	t.parts[t.begun%maxFastMRs] = transferPart{c, mr, len(p)}
	t.begun++
	return nil
}

// take takes an MR. If none is idle, and there can be no other, it waits for the first of the transfer's own, or for
// another's.
func (t *transfer) take() (*MR, error) {
	for {
		mr, err := t.mrs.take()
		switch {
		case err != nil:
			return nil, t.failed(t.qp.firstEnded(err))
		case mr != nil:
			return mr, nil
		case t.underWay() == 0:
			return t.await()
		}
		if err := t.finish(); err != nil {
			return nil, err
		}
	}
}

// await waits for an MR of another transfer.
func (t *transfer) await() (*MR, error) {
	select {
	case mr := <-t.mrs.idle:
		return mr, nil
	case <-t.ctx.Done():
		return nil, t.failed(deadline.ContextError(t.ctx))
	}
}

func (t *transfer) failed(err error) error { return &OpError{Op: t.op.call(), Err: err} }

// finish waits for the first part under way.
func (t *transfer) finish() error {
	_, err := t.first().c.await(t.ctx, t.op)
	return t.end(err)
}

func (t *transfer) first() *transferPart { return &t.parts[t.ended%maxFastMRs] }

// end ends the first part under way. If that was given up, its request goes on with a copy of the program's memory.
func (t *transfer) end(err error) error {
	p, mrs := *t.first(), t.mrs
	t.ended++
	if pending := pendingIn(err); pending != nil {
		_ = p.mr.Detach() // or it is complete by now, and the QP is closed
		go func() {
			<-pending.Free
			mrs.invalidate(p.mr)
		}()
		err = t.failed(pending.Err)
	} else {
		mrs.invalidate(p.mr)
	}
	if t.err = cmp.Or(t.err, err); t.err == nil {
		t.moved += p.n
	}
	return err
}

// pendingIn returns what a call has left under way, nil if it has not.
func pendingIn(err error) *PendingError {
	if err == nil {
		return nil
	}
	var pending *PendingError
	_ = errors.As(err, &pending)
	return pending
}

// giveUp gives up what is under way because of err.
func (t *transfer) giveUp(err error) {
	for t.underWay() > 0 {
		_, err := t.first().c.orGiveUp(t.op, err)
		_ = t.end(err)
	}
}

// What a QP registers for its transfers.
const (
	fastMRLen  = 256 << 10
	maxFastMRs = 16
)

// fastMRs are the MRs of a QP by which its transfers use memory of the program's, each for one request at a time: that
// takes less time than to register it anew, or to copy it, and no memory.
type fastMRs struct {
	pd     *PD
	idle   chan *MR
	mu     sync.Mutex
	all    []*MR
	closed bool
}

// fastMRsOf returns those of a QP, and makes them first where there are none.
func fastMRsOf(qp *QP) *fastMRs {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.fastMRs == nil {
		qp.fastMRs = &fastMRs{pd: qp.pd, idle: make(chan *MR, maxFastMRs), closed: qp.claim == released}
	}
	return qp.fastMRs
}

// take returns an MR, if one is idle or can be allocated. As many as Limits allow do, if that is one at least.
func (l *fastMRs) take() (*MR, error) {
	select {
	case mr := <-l.idle:
		return mr, nil
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errReleased
	case len(l.all) == maxFastMRs:
		return nil, nil
	}
	mr, err := l.pd.allocMR(memory.Most{Pieces: 1, Bytes: fastMRLen})
	switch {
	case err == nil:
		l.all = append(l.all, mr)
		return mr, nil
	case len(l.all) > 0:
		return nil, nil
	}
	return nil, err
}

// register registers memory in an MR, without any right of the peer's.
func (l *fastMRs) register(mr *MR, p []byte) error {
	g := memory.Registration{Memory: [][]byte{p}, Access: memory.LocalWrite}
	mr.region.Announce(&g)
	if f := l.domain().FastRegister(mr.region, &g); f != memory.None {
		l.idle <- mr
		return errReleased // which has ended the MR
	}
	return nil
}

// invalidate ends the registration, and has the MR be idle again.
func (l *fastMRs) invalidate(mr *MR) {
	l.domain().LocalInvalidate(mr.region)
	l.idle <- mr
}

func (l *fastMRs) domain() memory.Domain { return memory.Domain{Table: l.pd.rnic.table, PD: l.pd.num} }

// close ends the MRs: the QP has no requests any more.
func (l *fastMRs) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, mr := range l.all {
		_ = mr.Deregister()
	}
}
