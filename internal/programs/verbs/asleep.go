//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

// How a connection in the guise of RoCE ends. There, a peer that has gone is not noticed but by what is sent to it: the
// first request fails as one that was tried too often, with which the QP goes to ERR. Receives wait until then; that
// the connection of TCP has ended flushes those of package iwarp, and their completions sleep here.

const statusRetryExceeded = 12

// unreachable is for a QP whose peer could not be connected to: what is posted fails.
func (q *QP) unreachable() {
	for _, end := range q.ends() {
		_ = end.Modify(iwarp.StateError)
	}
}

// sleeps keeps the completion of a receive that was flushed: while the program may think that the QP is up, and from
// then on where others are kept, which come before it. The caller holds the lock of the CQ.
func (q *QP) sleeps(wc *iwarp.WC) bool {
	if wc.Status != iwarp.StatusFlushed || wc.Op != iwarp.OpRecv || !q.meets() {
		return false
	}
	up := q.state.Load() != StateErr
	if !up && len(q.asleep)+len(q.recvCQ.early) == 0 {
		return false
	}
	q.asleep = append(q.asleep, q.lateOf(&q.lateRecvs, wc.ID))
	if !up {
		q.rise()
	}
	return true
}

// rise has the program get what sleeps, before what of the same queue is in the CQ of package iwarp: that was flushed
// later. The caller holds the lock of the CQ.
func (q *QP) rise() {
	q.recvCQ.early = append(q.recvCQ.early, q.asleep...)
	q.asleep = nil
}

// rouse is rise, when the QP is in ERR, for who does not hold the lock of the CQ. A poll may have been there first, and
// have left some of it.
func (q *QP) rouse() {
	if q.state.Load() != StateErr {
		return
	}
	c := q.recvCQ
	c.polling.Lock()
	defer c.polling.Unlock()
	q.rise()
	if len(c.early) > 0 {
		c.wakeFor(true)
	}
}

// sleepLate keeps the completions of receives that were posted after the end, while the program may think that the QP
// is up.
func (q *QP) sleepLate(l ...lateWC) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.lateAsleep = append(q.lateAsleep, l...)
	q.riseLate()
}

func (q *QP) riseLate() {
	if q.state.Load() != StateErr {
		return
	}
	l := q.lateAsleep
	q.lateAsleep = nil
	q.flushLocked(l)
}

// wake has the receives completed that sleep, when the QP has gone to ERR.
func (q *QP) wake() {
	q.giving.Lock()
	q.rouse()
	q.giving.Unlock()
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.riseLate()
	if q.lastWQE == lastDue {
		q.tellLast()
	}
}

// Whether the program was told that the QP takes no more receives from its Shared Receive Queue: once for each
// connection. UCX ends itself over a second time.
const (
	lastNot = iota
	lastDue // it is to be told with ERR
	lastTold
)

func (q *QP) tellLast() {
	q.lastWQE = lastTold
	q.raise(asyncLastWQE)
}

// tookLast is told when the QP takes no more receives from its Shared Receive Queue. The program hears of it when the
// QP goes to ERR.
func (q *QP) tookLast() {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	switch {
	case !q.meets():
		q.raise(asyncLastWQE)
	case q.lastWQE == lastTold:
	case q.state.Load() == StateErr:
		q.tellLast()
	default:
		q.lastWQE = lastDue
	}
}

// failed returns the status of a Send, or the like, that was flushed, when the program polls its completion: it may be
// the first to fail on a QP of which the program does not know yet that it has ended. The receives that sleep come
// after it. The caller holds the lock of the CQ.
func (q *QP) failed() (status uint32) {
	if !q.meets() || !q.state.CompareAndSwap(StateRTS, StateErr) {
		return statusOf(iwarp.StatusFlushed)
	}
	go q.wake() // the CQ is locked
	return statusRetryExceeded
}

// spoilt is for a receive that has failed by itself, as one that was too small: with that the QP goes to ERR, and what
// else it has is flushed.
func (q *QP) spoilt() {
	if q.meets() && (q.state.CompareAndSwap(StateRTS, StateErr) || q.state.CompareAndSwap(StateRTR, StateErr)) {
		go q.wake() // the CQ is locked
	}
}

// broken has the QP go to ERR over an error that was found here, which has ended its connection, and what it has is
// flushed. It reports false if the end that the error is about is none of it any more: the program may have led it to
// RESET, and on, meanwhile.
func (q *QP) broken(end *iwarp.QP) bool {
	q.linking.Lock()
	defer q.linking.Unlock()
	if s := end.State(); s == iwarp.StateIdle || s == iwarp.StateRTS || !slices.Contains(q.ends(), end) {
		return false
	}
	if q.state.CompareAndSwap(StateRTS, StateErr) || q.state.CompareAndSwap(StateRTR, StateErr) {
		go q.wake() // which asks for the meeting
	}
	return true
}

// leave ends a meeting, if it still is the one with the context, when the program wants the QP to fail: what has been
// completed to the program gets to the peer before the end does. It returns when that is so: within closeLimit, once a
// call that is being accepted has come to its end (meeting.stop).
func (q *QP) leave(meeting context.Context) {
	q.ending.Lock()
	defer q.ending.Unlock()
	now, doing := q.meetingNow()
	if now != meeting {
		return
	}
	doing.Wait()
	if q.sender().CloseWrite() != nil || !q.ended(closeLimit) {
		q.unreachable()
	}
}

// depart has the QP go to ERR, as the program wants it, and stops what is connecting it. It returns the state before;
// and of a meeting, if there is one, the context by which it is known and what is to be closed when it has been left.
func (q *QP) depart() (before uint32, meeting context.Context, left chan struct{}) {
	q.linking.Lock()
	defer q.linking.Unlock()
	before = q.state.Swap(StateErr)
	if q.meeting.path == nil {
		return before, nil, nil
	}
	q.meeting.stop()
	q.meeting.left = make(chan struct{})
	return before, q.meeting.ctx, q.meeting.left
}

// leaving returns what is closed when the meeting has been left: nil if nobody leaves it.
func (q *QP) leaving() <-chan struct{} {
	q.linking.Lock()
	defer q.linking.Unlock()
	return q.meeting.left
}

// departed reports whether the QP is in ERR and has, or had, a connection in the guise of RoCE: nothing is carried out
// any more that is posted.
func (q *QP) departed() bool { return q.state.Load() == StateErr && q.meets() }

// ended waits for the end of the connection, for a time.
func (q *QP) ended(limit time.Duration) bool {
	late := time.After(limit)
	for _, end := range q.ends() {
		select {
		case <-end.Done():
		case <-late:
			return false
		}
	}
	return true
}

// cancel stops what is connecting the QP, and returns the context by which the meeting is known: nil if there is none.
func (q *QP) cancel() context.Context {
	q.linking.Lock()
	defer q.linking.Unlock()
	if q.meeting.path != nil {
		q.meeting.stop()
	}
	return q.meeting.ctx
}

func (q *QP) meetingNow() (context.Context, *sync.WaitGroup) {
	q.linking.Lock()
	defer q.linking.Unlock()
	return q.meeting.ctx, q.meeting.doing
}
