//go:build linux && (amd64 || arm64)

package verbs

import (
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/emulation"
)

// endings are orderly ends under way that the program has begun, and does not wait for: by rdma_disconnect, or
// ibv_modify_qp to SQD.
//
// Programs deregister the memory of a QP's receives after that: rdma-core's rsockets, for one. The kernel's devices
// take nothing in any more by then, whereas here the peer may still send, as long as its half is open: its message
// would find a receive without memory, and end the connection with a Terminate, though all is in order. So who
// deregisters waits: no longer than the destruction of the QP would.
type endings struct {
	mu  sync.Mutex
	all []leave
}

type leave struct {
	qp   *QP
	over chan struct{} // closed when nothing of the QP's reads or writes memory any more
}

// add takes note of the end of a QP.
func (e *endings) add(q *QP) leave {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := leave{q, make(chan struct{})}
	e.all = append(e.all, one)
	return one
}

// remove tells that one is over.
func (e *endings) remove(one leave) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = slices.DeleteFunc(e.all, func(other leave) bool { return other == one })
	close(one.over)
}

// await returns when those are over that are under way now, and about which of says true.
func (e *endings) await(of func(*QP) bool) {
	e.mu.Lock()
	all := slices.Clone(e.all)
	e.mu.Unlock()
	for _, one := range all {
		if of(one.qp) {
			<-one.over
		}
	}
}

// awaitEnds returns when no end is under way in the PD of a region, whose memory is to be the program's alone.
func (d *Device) awaitEnds(m *MR) {
	if pd := d.pds.get(m.pd); pd != nil {
		d.endings.await(func(q *QP) bool { return q.pd == pd.pd })
	}
}

// startClose has the connection closed in order, and does not wait for that. When it returns the QP is in ERR, and what
// is posted is flushed. See closeConn.
func (q *QP) startClose() { q.leaves(q.device.endings.add(q)) }

// beginOf is begin where the connection is still that of an ID. It returns what is closed when it is over, or nil.
func (q *QP) beginOf(id *ID) (over <-chan struct{}) {
	var one leave
	q.of(id, func() { one = q.device.endings.add(q) }) // so that RESET, if it begins now, waits
	if one.qp != nil {
		q.leaves(one)
	}
	return one.over
}

// endOf is end where the connection is still that of an ID.
func (q *QP) endOf(id *ID) {
	if over := q.beginOf(id); over != nil {
		<-over
	}
}

func (q *QP) leaves(one leave) {
	q.state.Store(StateErr)
	q.closes.Store(true)
	emulation.BeginClose(q.qp)
	go func() {
		defer q.device.endings.remove(one)
		q.closeConn()
	}()
}
