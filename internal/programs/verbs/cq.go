//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
)

// A Channel is a struct ibv_comp_channel: it has a token of each CQ that has a completion to be noticed.
type Channel struct{ events *Queue[uint64] }

// OpenChannel makes a Channel, whose events are shown by an eventfd, and wake those who wait.
func (d *Device) OpenChannel(fd int, wake func()) (Handle, syscall.Errno) {
	return made(d.channels.add(&Channel{newQueue[uint64](fd, wake)}))
}

// CloseChannel ends a Channel.
func (d *Device) CloseChannel(h Handle) syscall.Errno {
	c := d.channels.remove(h)
	if c == nil {
		return syscall.EINVAL
	}
	c.events.close()
	return fine
}

// NextCQ takes the token of a CQ from a Channel. It is EAGAIN if there is none.
func (d *Device) NextCQ(h Handle) (token uint64, errno syscall.Errno) {
	c := d.channels.get(h)
	if c == nil {
		return 0, syscall.EINVAL
	}
	token, ok := c.events.next()
	if !ok {
		return 0, syscall.EAGAIN
	}
	return token, fine
}

// A CQ is a struct ibv_cq.
type CQ struct {
	source
	cq      *iwarp.CQ
	channel *Channel
	notices <-chan struct{} // of package iwarp; nil without a channel
	stop    chan struct{}   // ends notice
	stopped chan struct{}

	polling sync.Mutex // after QP.giving
	vain    int        // polls without a completion since the last one with
	wcs     [32]iwarp.WC
	early   []added                // before those of package iwarp: see sleeps
	late    []added                // and after them
	users   atomic.Int32           // QPs of datagrams, of which package iwarp does not know
	port    atomic.Pointer[udPort] // of the last of them that receives here
}

// CreateCQ returns a CQ with room for depth completions. The token names it in the events of the context and of the
// channel; channel may be 0.
func (d *Device) CreateCQ(context, channel Handle, depth int, token uint64) (Handle, syscall.Errno) {
	x, ch := d.contexts.get(context), d.channels.get(channel)
	if x == nil || ch == nil && channel != 0 {
		return 0, syscall.EINVAL
	}
	cq, err := d.rnic.CreateCQ(depth)
	if err != nil {
		return 0, errnoOf(err)
	}
	c := &CQ{source: source{context: x, token: token}, cq: cq, channel: ch}
	d.sources.Store(cq, &c.source)
	if ch != nil {
		c.notices, c.stop, c.stopped = cq.Events(), make(chan struct{}), make(chan struct{})
		go c.notice()
	}
	return made(d.cqs.add(c))
}

// notice passes notices on to the channel.
func (c *CQ) notice() {
	defer close(c.stopped)
	for {
		select {
		case <-c.notices:
			c.channel.events.push(c.token)
		case <-c.stop:
			return
		}
	}
}

// ResizeCQ changes how many completions the CQ has room for.
func (d *Device) ResizeCQ(h Handle, depth int) syscall.Errno {
	c := d.cqs.get(h)
	if c == nil {
		return syscall.EINVAL
	}
	c.polling.Lock()
	defer c.polling.Unlock()
	if c.cq.Depth()-c.room() > depth {
		return syscall.EINVAL
	}
	return errnoOf(c.cq.Resize(depth))
}

// DestroyCQ ends a CQ, and drops the events about it that were not fetched. It is EBUSY while a QP uses it.
func (d *Device) DestroyCQ(h Handle) syscall.Errno {
	c := d.cqs.get(h)
	if c == nil {
		return syscall.EINVAL
	}
	if c.users.Load() != 0 || c.cq.Close() != nil {
		return syscall.EBUSY
	}
	if d.cqs.remove(h) == nil {
		return syscall.EINVAL
	}
	d.sources.Delete(c.cq)
	c.silence()
	if c.channel != nil {
		close(c.stop)
		<-c.stopped
		c.channel.events.remove(func(token uint64) bool { return token == c.token })
	}
	return fine
}

// Arm asks for one event on the channel, of whatever completion comes first: package iwarp keeps what was asked for,
// for those too of which it does not know (see wakeFor). A program that has polled the completion of the event before
// gets both events: package iwarp holds one notice, so that the last goes on before the next can come.
func (d *Device) Arm(h Handle, solicitedOnly bool) syscall.Errno {
	c := d.cqs.get(h)
	if c == nil {
		return syscall.EINVAL
	}
	select {
	case <-c.notices:
		c.channel.events.push(c.token)
	default:
	}
	c.cq.Arm(solicitedOnly)
	if port := c.port.Load(); port != nil {
		port.socket.Expect()
	}
	return fine
}

// Poll moves completions to wcs and returns how many, or -1 if there is no such CQ.
func (d *Device) Poll(h Handle, wcs []WC) int {
	c := d.cqs.get(h)
	if c == nil {
		return -1
	}
	n, yields, overflowed := c.poll(wcs)
	if port := c.port.Load(); n == 0 && port != nil && port.socket.Poll() {
		n, yields, overflowed = c.poll(wcs)
	}
	if overflowed {
		c.raise(asyncCQError)
	}
	if yields {
		d.giveWay()
	}
	return n
}

func schedYield() { _, _, _ = syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// A program that polls has nothing better to do with its processor, and whoever sends or receives for it, at either
// end, may have none. From so many polls in vain on, which are some tens of microseconds, each of so many lets others
// run first.
const (
	patientPolls = 64
	yieldEvery   = 16
)

// poll is Poll. It reports whether others are to run first, and whether there were more completions than the CQ has
// room for.
func (c *CQ) poll(wcs []WC) (n int, yields, overflowed bool) {
	c.polling.Lock()
	defer c.polling.Unlock()
	overflowed = c.trim()
	n = moveOldest(wcs, &c.early)
	for got, asked := 0, 0; n < len(wcs) && got == asked; { // some may be kept from the program: see set
		asked = min(len(c.wcs), len(wcs)-n)
		got = c.cq.Poll(c.wcs[:asked])
		for i := range got {
			if wcs[n].set(&c.wcs[i]) {
				n++
			}
		}
	}
	n += moveOldest(wcs[n:], &c.early)
	if n < len(wcs) {
		n += moveOldest(wcs[n:], &c.late)
	}
	if c.vain++; n > 0 {
		c.vain = 0
	}
	return n, c.vain >= patientPolls && c.vain%yieldEvery == 0, overflowed
}

// forget drops the completions of a QP, as RDMA hardware does: see [QP.forget]. Requests of others keep their places.
func (c *CQ) forget(qp any, number uint32) {
	c.polling.Lock()
	defer c.polling.Unlock()
	emulation.Forget(c.cq, qp)
	its := func(a added) bool { return a.QPNum == number }
	c.early = slices.DeleteFunc(c.early, its)
	c.late = slices.DeleteFunc(c.late, its)
}

// set translates a completion. It reports false for one that the program does not get for now.
func (w *WC) set(wc *iwarp.WC) bool {
	*w = WC{ID: wc.ID, Status: statusOf(wc.Status), Opcode: opcodeOf(wc.Op), ByteLen: uint32(wc.Length)}
	if q := qpOf(wc.QP); q != nil {
		if q.sleeps(wc) {
			return false
		}
		w.QPNum = q.number
		switch {
		case wc.Status == iwarp.StatusSuccess && q.state.Load() == StateRTR:
			q.heard()
		case wc.Status == iwarp.StatusSuccess:
		case wc.Op != iwarp.OpRecv:
			w.fail(q, wc.Status)
		case wc.Status != iwarp.StatusFlushed:
			q.spoilt()
		}
	}
	if wc.HasImmediate {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], wc.Immediate)
		w.Opcode, w.ByteLen = wcRecvImm, uint32(wc.Written)
		w.Invalidated, w.Flags = binary.NativeEndian.Uint32(b[:]), wcWithImm
	}
	w.setPrefix(wc.Prefix)
	if wc.Invalidated != 0 {
		w.Invalidated, w.Flags = wc.Invalidated, wcWithInv
	}
	return true
}

// fail translates the status of a Send, or the like, that has failed, with which the program learns of the end.
func (w *WC) fail(q *QP, s iwarp.Status) {
	if status := q.failed(); s == iwarp.StatusFlushed {
		w.Status = status
	}
}
