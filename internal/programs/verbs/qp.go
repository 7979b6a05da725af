//go:build linux && (amd64 || arm64)

package verbs

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
)

// States of a QP, by the numbers of enum ibv_qp_state.
const (
	StateReset = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateSQE
	StateErr
)

// How long a close may take: see QP.end.
const (
	closeTimeout = time.Second
	closeLimit   = 3 * time.Second
)

// A QP is a struct ibv_qp.
type QP struct {
	source
	device    *Device
	pd        *iwarp.PD
	config    iwarp.QPConfig
	qp        *iwarp.QP
	voice     atomic.Pointer[iwarp.QP] // which sends, if it is another: see speak
	sendCQ    *CQ
	recvCQ    *CQ
	signalAll bool
	maxInline int
	sendSGEs  int32 // that a request has at most
	recvSGEs  int32
	ownRecvs  bool
	state     atomic.Uint32
	number    uint32      // that the program knows it by
	plain     atomic.Bool // Sends are known to have no prefix
	closes    atomic.Bool // the program has ended the connection, in order

	sending sync.Mutex
	sends   sends

	receiving sync.Mutex
	recvs     receives

	ending sync.Mutex // held during Close

	asleep []added // see sleeps; guarded by recvCQ.polling

	giving     sync.Mutex // held while what is late gets to its CQs: before CQ.polling, and before flushing
	flushing   sync.Mutex
	late       []lateWC
	lateAsleep []lateWC // see sleepLate
	lastWQE    int

	// that were flushed here, or sleep, and whose completions the program has not polled
	lateSends, lateRecvs atomic.Int32

	linking sync.Mutex
	id      *ID  // whose connection it has, or had
	orphan  bool // that is no longer the program's, or RESET has begun
	meeting meeting
	gone    bool // the QP is being destroyed
}

// QPAttr says what QP to create: the capacities of struct ibv_qp_init_attr. SRQ may be 0.
type QPAttr struct {
	Context, PD, SendCQ, RecvCQ, SRQ Handle
	SendDepth, RecvDepth, MaxInline  int
	SendSGEs, RecvSGEs               int32
	SignalAll                        bool
	Token                            uint64
}

// CreateQP returns a QP in the state RESET, and its number.
func (d *Device) CreateQP(a QPAttr) (h Handle, number uint32, errno syscall.Errno) {
	x, pd, sendCQ, recvCQ, srq := d.contexts.get(a.Context), d.pds.get(a.PD), d.cqs.get(a.SendCQ),
		d.cqs.get(a.RecvCQ), d.srqs.get(a.SRQ)
	if x == nil || pd == nil || sendCQ == nil || recvCQ == nil || srq == nil && a.SRQ != 0 {
		return 0, 0, syscall.EINVAL
	}
	if max(a.SendDepth, a.RecvDepth) > iwarp.MaxQueueDepth || min(a.SendDepth, a.RecvDepth, a.MaxInline) < 0 ||
		a.MaxInline > iwarp.MaxInline {
		return 0, 0, syscall.EINVAL
	}
	q := &QP{
		source: source{context: x, token: a.Token}, device: d, signalAll: a.SignalAll,
		maxInline: a.MaxInline, ownRecvs: srq == nil,
		sendSGEs: a.SendSGEs, recvSGEs: a.RecvSGEs, sendCQ: sendCQ, recvCQ: recvCQ,
	}
	cfg := iwarp.QPConfig{
		SendCQ: sendCQ.cq, RecvCQ: recvCQ.cq, SendDepth: max(a.SendDepth, 1),
		RecvDepth: max(a.RecvDepth, 1), MaxInline: a.MaxInline,
		// When the peer has closed its half, its program wants no answer: as with the kernel's devices
		// the connection ends when what was posted is finished.
		Linger:       -1,
		CloseTimeout: closeTimeout, CloseLimit: closeLimit, UserData: q,
	}
	if srq != nil {
		cfg.SRQ = srq.srq
	}
	if a.MaxInline == 0 {
		cfg.MaxInline = -1
	}
	if d.roce {
		cfg.RNR, cfg.Confirm, cfg.CheckLate = rnrPolicy, d.confirms(), true
	}
	q.pd, q.config = pd.pd, cfg
	var err error
	if q.qp, err = pd.pd.CreateQP(cfg); err != nil {
		return 0, 0, errnoOf(err)
	}
	return d.number(q)
}

// confirms reports whether the peer can be asked what it has carried out, by an empty RDMA Read. One that arrives while
// Linux's siw sends is answered with bytes of what it sends, which ends the connection (docs/interop.md).
func (d *Device) confirms() bool { return d.preset == nil || d.preset.Name != "siw" }

// number gives a QP its number and makes it known.
func (d *Device) number(q *QP) (h Handle, number uint32, errno syscall.Errno) {
	q.number = q.qp.Num()
	if d.roce {
		var err error
		if q.number, err = d.ports.allocate(d); err != nil {
			_ = q.qp.Close()
			return 0, 0, errnoOf(err)
		}
	}
	h, errno = made(d.qps.add(q))
	d.numbers.Store(q.number, h)
	return h, q.number, errno
}

// FindQP returns the QP with a number.
func (d *Device) FindQP(number uint32) (Handle, syscall.Errno) {
	h, ok := d.numbers.Load(number)
	if !ok {
		return 0, syscall.EINVAL
	}
	return h.(Handle), fine
}

// ModifyQP makes a transition that a program may ask for. RTR means nothing to iWARP, and to RTS only a connection
// leads: EINVAL, as Linux's siw has it, unless there is one.
//
// SQD begins an orderly close, as librdmacm wants it of an iWARP device. ERR ends the connection at once.
func (d *Device) ModifyQP(h Handle, to uint32) syscall.Errno {
	q := d.qps.get(h)
	if q == nil {
		return syscall.EINVAL
	}
	if id := q.connection(); id != nil && id.responding() && (to == StateInit || to == StateRTR || to == StateRTS) {
		return fine // the connection is up
	}
	switch state := q.State(); to {
	case StateReset:
		return q.reset()
	case StateInit:
		if state != StateReset && state != StateInit {
			return syscall.EINVAL
		}
		q.state.Store(StateInit)
	case StateRTR:
		if state != StateInit && state != StateRTS {
			return syscall.EINVAL
		}
	case StateRTS:
		if !q.state.CompareAndSwap(StateRTR, StateRTS) && state != StateRTS {
			return syscall.EINVAL
		}
	case StateSQD:
		if q.meets() {
			return syscall.EOPNOTSUPP
		}
		if state != StateRTS && state != StateErr {
			return syscall.EINVAL
		}
		q.startClose()
	case StateErr:
		q.fail()
	default:
		return syscall.EINVAL
	}
	return fine
}

// AllowQP says what the peer may do: the flags of ibv_modify_qp with IBV_QP_ACCESS_FLAGS. A QP for which nothing was
// said allows all.
func (d *Device) AllowQP(h Handle, access uint32) syscall.Errno {
	q := d.qps.get(h)
	if q == nil {
		return syscall.EINVAL
	}
	return errnoOf(emulation.Deny(q.qp, uint8(remoteRights(
		accessRemoteWrite|accessRemoteRead|accessRemoteAtomic)&^remoteRights(access))))
}

// State returns the number of the QP's state.
func (q *QP) State() uint32 {
	s := q.state.Load()
	if s == StateErr || q.meets() {
		return s
	}
	switch q.qp.State() {
	case iwarp.StateRTS:
		return StateRTS
	case iwarp.StateIdle:
		return s
	case iwarp.StateClosing:
		return StateSQD
	default:
		return StateErr
	}
}

// QueryQP returns the number of the QP's state, and the depths of its RDMA Reads: inbound and outbound.
func (d *Device) QueryQP(h Handle) (state uint32, ird, ord int, errno syscall.Errno) {
	q := d.qps.get(h)
	if q == nil {
		return 0, 0, 0, syscall.EINVAL
	}
	a := q.qp.Query()
	return q.State(), a.IRD, a.ORD, fine
}

// fail ends the connection at once, and flushes all work.
func (q *QP) fail() {
	before, meeting, left := q.depart()
	if meeting != nil {
		go func() {
			defer close(left)
			q.leave(meeting)
		}()
		q.wake()
		return
	}
	if before == StateErr && q.device.roce && !q.linked() {
		return // its events are all told, and those of another end might come after RESET
	}
	_ = q.qp.Modify(iwarp.StateError)
}

// closeConn closes the connection in order: what was posted is carried out, and what the peer has asked to read is
// answered. It returns within closeLimit, and at once where there is no connection.
//
// Of two at a time the second waits for the first: a Close that finds another going on may return before the QP has
// left its CQs, which the program destroys next.
func (q *QP) closeConn() {
	q.state.Store(StateErr)
	q.closes.Store(true)
	q.ending.Lock()
	defer q.ending.Unlock()
	q.mute()
	_ = q.qp.Close()
}

// DestroyQP ends a QP in order: when it returns, nothing of the QP's reads or writes memory any more, its CQs have no
// completions of it, and the peer has all that was posted, unless it did not take it.
func (d *Device) DestroyQP(h Handle) syscall.Errno {
	q := d.qps.remove(h)
	if q == nil {
		return syscall.EINVAL
	}
	d.numbers.Delete(q.number)
	if d.roce {
		defer d.ports.give(q.number)
	}
	q.part(true)
	q.silence()
	if id := q.connection(); id != nil {
		id.abandon()
	}
	for _, end := range q.ends() { // a CQ may have no room for what is flushed, which nobody gets
		emulation.Mute(end)
	}
	q.closeConn()
	q.forget()
	return fine
}

// PostSend posts a list of requests. After an error bad is the one that it is about, and those before it are posted. It
// is EINVAL before there is a connection, or one on its way. When that has ended they are flushed, with completions.
func (d *Device) PostSend(h Handle, wr *SendWR) (bad *SendWR, errno syscall.Errno) {
	q := d.qps.get(h)
	if q == nil || !q.takesSends() {
		return wr, syscall.EINVAL
	}
	q.sending.Lock()
	defer q.sending.Unlock()
	if q.departed() {
		return q.flushSends(wr)
	}
	bad, err := q.sends.post(q, wr)
	if q.over(err) {
		return q.flushSends(bad)
	}
	return bad, errnoOf(err)
}

// takesSends reports whether there is a connection, or one on its way, or there was. ERR flushes also without one.
func (q *QP) takesSends() bool {
	state := q.state.Load()
	return q.linked() || q.meets() && state >= StateRTS || state == StateErr
}

// PostRecv posts a list of receives, as PostSend.
func (d *Device) PostRecv(h Handle, wr *RecvWR) (bad *RecvWR, errno syscall.Errno) {
	q := d.qps.get(h)
	if q == nil || !q.ownRecvs || q.state.Load() == StateReset {
		return wr, syscall.EINVAL
	}
	q.receiving.Lock()
	defer q.receiving.Unlock()
	if q.departed() {
		return q.flushRecvs(wr)
	}
	bad, err := q.recvs.post(d, wr, q.qp, q.recvSGEs, d.roce)
	if q.over(err) {
		return q.flushRecvs(bad)
	}
	return bad, errnoOf(err)
}
