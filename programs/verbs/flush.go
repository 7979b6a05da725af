//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// A QP in the state ERR takes requests, and flushes them: programs post until they hear of the end. Package iwarp refuses
// them, so that the completions are made here.

// A lateWC is the completion of a request that was posted after the end.
type lateWC struct {
	cq *CQ
	wc WC
}

// maxLate bounds how many wait for the QP's last real completion.
const maxLate = iwarp.MaxQueueDepth

// over reports whether an error of a post is that of a connection that has ended, or is about to.
func (q *QP) over(err error) bool { return err != nil && errors.Is(err, iwarp.ErrClosed) }

func (q *QP) flushSends(wr *SendWR) syscall.Errno {
	var late []lateWC
	wakes := false
	for ; wr != nil; wr = wr.Next {
		wc := q.flushed(wr.ID)
		status, first := q.failed()
		wc.Status, wakes = status, wakes || first
		late = append(late, lateWC{q.sendCQ, wc})
	}
	errno := q.flush(late)
	if wakes {
		q.wake() // the receives come after the request that has failed
	}
	return errno
}

func (q *QP) flushRecvs(wr *RecvWR) syscall.Errno {
	var late []lateWC
	for ; wr != nil; wr = wr.Next {
		late = append(late, lateWC{q.recvCQ, q.flushed(wr.ID)})
	}
	if q.meets() {
		q.sleep(late...)
		return fine
	}
	return q.flush(late)
}

// flushed is what is valid of a completion in error.
func (q *QP) flushed(id uint64) WC {
	return WC{ID: id, Status: statusOf(iwarp.StatusFlushed), QPNum: q.number}
}

// flush completes requests after all that were posted before the end.
func (q *QP) flush(late []lateWC) syscall.Errno {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	return q.flushLocked(late)
}

func (q *QP) flushLocked(late []lateWC) syscall.Errno {
	switch {
	case len(late) == 0:
		return fine
	case len(q.late)+len(late) > maxLate:
		return syscall.ENOMEM
	case len(q.late) == 0:
		go q.afterEnd()
	}
	q.late = append(q.late, late...)
	return fine
}

func (q *QP) afterEnd() {
	for _, end := range q.ends() {
		if end.LocalAddr() != nil { // otherwise there was no connection, and nothing is under way
			<-end.Done()
		}
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	for _, l := range q.late {
		l.cq.add(l.wc, true)
	}
	q.late = nil
}

// drop forgets the completions that a QP that is destroyed would still have had. Its CQs may be destroyed next.
func (q *QP) drop() {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.late, q.asleep = nil, nil
}

// add appends a completion to those of package iwarp. A CQ without room drops it. Whether it is one that was solicited, or in error,
// decides about an event for those who have asked for no others.
func (c *CQ) add(wc WC, solicited bool) {
	c.polling.Lock()
	if len(c.late) < c.cq.Depth() {
		c.late = append(c.late, wc)
	}
	c.polling.Unlock()
	if c.channel == nil {
		return
	}
	if solicited && c.armed.Swap(disarmed) != disarmed || c.armed.CompareAndSwap(armedAny, disarmed) {
		c.channel.events.push(c.token)
	}
}
