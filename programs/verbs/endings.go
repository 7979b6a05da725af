//go:build linux && (amd64 || arm64)

package verbs

import (
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
)

// endings are orderly ends under way that the program has begun, and does not wait for: by rdma_disconnect, or ibv_modify_qp to SQD.
//
// Programs deregister the memory of a QP's receives after that: rdma-core's rsockets, for one. The kernel's devices take nothing in any more by
// then, whereas here the peer may still send, as long as its half is open: its message would find a receive without memory, and end the connection with a
// Terminate, though all is in order. So who deregisters waits: no longer than the destruction of the QP, which comes next, would.
type endings struct {
	mu  sync.Mutex
	all []leave
}

type leave struct {
	pd   *iwarp.PD
	over chan struct{} // closed when nothing of the QP's reads or writes memory any more
}

// add takes note of the end of a QP in a PD.
func (e *endings) add(pd *iwarp.PD) leave {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := leave{pd, make(chan struct{})}
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

// await returns when those in a PD are over that are under way now.
func (e *endings) await(pd *iwarp.PD) {
	e.mu.Lock()
	all := slices.Clone(e.all)
	e.mu.Unlock()
	for _, one := range all {
		if one.pd == pd {
			<-one.over
		}
	}
}

// begin ends the connection in order, and does not wait for that: when it returns the QP is in ERR, and what is posted is flushed. See end.
func (q *QP) begin() {
	q.state.Store(StateErr)
	for _, end := range q.ends() {
		end.BeginClose()
	}
	one := q.device.endings.add(q.pd)
	go func() {
		defer q.device.endings.remove(one)
		q.end()
	}()
}
