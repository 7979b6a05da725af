//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"

	"github.com/goiwarp/iwarp"
)

// reset makes the QP ready for another connection.
func (q *QP) reset() syscall.Errno {
	q.leaveID()
	q.device.endings.await(func(other *QP) bool { return other == q }) // the QP is of no use after that
	if meeting := q.cancel(); meeting != nil {
		q.leave(meeting)
		q.part(false)
	}
	switch q.qp.State() {
	case iwarp.StateRTS:
		q.fail()
		<-q.qp.Done()
	case iwarp.StateTerminate, iwarp.StateClosing: // which is over soon: see closeTimeout
		<-q.qp.Done()
	}
	if q.qp.State() != iwarp.StateIdle {
		if err := q.qp.Modify(iwarp.StateIdle); err != nil {
			return errnoOf(err)
		}
	}
	q.mute()
	if err := q.prefix(q.qp, false); err != nil {
		return errnoOf(err)
	}
	q.plain.Store(false)
	q.closes.Store(false)
	q.forget()
	q.lateSends.Store(0)
	q.lateRecvs.Store(0)
	q.linking.Lock()
	defer q.linking.Unlock()
	q.id, q.orphan = nil, false
	q.state.Store(StateReset)
	return fine
}
