//go:build linux && (amd64 || arm64)

package verbs

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

// A UD is a struct ibv_qp of unreliable datagrams, which there are in the guise of RoCE. What is sent completes when
// the kernel has it; what comes is dropped, unless a receive was posted for it.
type UD struct {
	device         *Device
	pd             Handle
	in             *PD // which pd names
	sendCQ, recvCQ *CQ
	signalAll      bool
	maxInline      int
	sendSGEs       int32
	recvSGEs       int32
	port           *udPort
	number         uint32

	sending   sync.Mutex // before mu
	packet    []byte     // that is sent
	sendDepth int32
	sent      atomic.Int32 // requests whose completions the program does not have yet

	mu    sync.Mutex
	state uint32
	qkey  uint32
	recvs []udReceive // a ring
	first int
	count int
}

// A udReceive is a receive that was posted.
type udReceive struct {
	id   uint64
	list []SGE
}

// CreateUD returns a QP of datagrams in the state RESET, and its number. There is no SRQ for it. What is sent
// has completed at once, and a request is outstanding until the program has its completion; one without is not.
func (d *Device) CreateUD(a QPAttr) (h Handle, number uint32, errno syscall.Errno) {
	pd, sendCQ, recvCQ := d.pds.get(a.PD), d.cqs.get(a.SendCQ), d.cqs.get(a.RecvCQ)
	if !d.roce || a.SRQ != 0 {
		return 0, 0, syscall.EOPNOTSUPP
	}
	if pd == nil || sendCQ == nil || recvCQ == nil {
		return 0, 0, syscall.EINVAL
	}
	if max(a.SendDepth, a.RecvDepth) > iwarp.MaxQueueDepth || min(a.SendDepth, a.RecvDepth, a.MaxInline) < 0 ||
		a.MaxInline > datagram.MTU {
		return 0, 0, syscall.EINVAL
	}
	u := &UD{
		device: d, pd: a.PD, in: pd, sendCQ: sendCQ, recvCQ: recvCQ, signalAll: a.SignalAll,
		maxInline: a.MaxInline, sendDepth: int32(a.SendDepth), sendSGEs: a.SendSGEs, recvSGEs: a.RecvSGEs,
		packet: make([]byte, 0, datagram.HeaderLen+datagram.MTU), recvs: make([]udReceive, a.RecvDepth),
	}
	if err := d.ports.takeDatagrams(d, u); err != nil {
		return 0, 0, errnoOf(err)
	}
	if h = d.uds.add(u); h == 0 {
		d.ports.giveDatagrams(u)
		return 0, 0, syscall.ENOMEM
	}
	u.use(1)
	recvCQ.port.Store(u.port)
	return h, u.number, fine
}

// use notes that the QP uses other objects, or no longer.
func (u *UD) use(n int32) {
	u.in.users.Add(n)
	u.sendCQ.users.Add(n)
	u.recvCQ.users.Add(n)
}

// DestroyUD ends a QP. When it returns, nothing of it reads or writes memory any more, and its CQs have no completions
// of it.
func (d *Device) DestroyUD(h Handle) syscall.Errno {
	u := d.uds.remove(h)
	if u == nil {
		return syscall.EINVAL
	}
	d.ports.giveDatagrams(u)
	u.reset()
	u.use(-1)
	return fine
}

// ModifyUD makes a transition. There is no SQD.
func (d *Device) ModifyUD(h Handle, to uint32) syscall.Errno {
	u := d.uds.get(h)
	if u == nil {
		return syscall.EINVAL
	}
	if to == StateReset {
		u.reset()
		return fine
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case to == StateErr:
		u.fail()
	case to == StateSQD:
		return syscall.EOPNOTSUPP
	case to == StateInit && u.state <= StateInit, to == StateRTR && u.state == StateInit, to == StateRTS &&
		(u.state == StateRTR || u.state == StateRTS):
		u.state = to
	default:
		return syscall.EINVAL
	}
	return fine
}

// SetQKey sets what those who send to the QP have to know.
func (d *Device) SetQKey(h Handle, qkey uint32) syscall.Errno {
	u := d.uds.get(h)
	if u == nil {
		return syscall.EINVAL
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.qkey = qkey
	return fine
}

// QueryUD returns the number of the QP's state.
func (d *Device) QueryUD(h Handle) (state uint32, errno syscall.Errno) {
	u := d.uds.get(h)
	if u == nil {
		return 0, syscall.EINVAL
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state, fine
}

// reset drops all work and all completions.
func (u *UD) reset() {
	u.sending.Lock()
	defer u.sending.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state, u.first, u.count = StateReset, 0, 0
	u.sendCQ.forget(u, u.number)
	u.recvCQ.forget(u, u.number)
	u.sent.Store(0)
}

// fail flushes the receives. The caller holds u.mu.
func (u *UD) fail() {
	u.state = StateErr
	for u.count > 0 {
		u.recvCQ.complete(added{WC: u.flushed(u.next().id)}, true)
	}
}

// addSent completes a request to send, which is outstanding until the program has that.
func (u *UD) addSent(wc WC, solicited bool) {
	u.sent.Add(1)
	u.sendCQ.complete(added{WC: wc, sent: &u.sent}, solicited)
}

// next takes the oldest receive. The caller holds u.mu.
func (u *UD) next() *udReceive {
	r := &u.recvs[u.first]
	u.first = (u.first + 1) % len(u.recvs)
	u.count--
	return r
}

// flushed is what is valid of a completion in error.
func (u *UD) flushed(id uint64) WC {
	return WC{ID: id, Status: statusOf(iwarp.StatusFlushed), QPNum: u.number}
}
