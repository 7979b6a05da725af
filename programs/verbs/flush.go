//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"slices"
	"sync/atomic"
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
func (q *QP) over(err error) bool {
	return err != nil && (errors.Is(err, iwarp.ErrClosed) || q.departed())
}

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
	if left := q.leaving(); left != nil {
		<-left
	}
	for _, end := range q.ends() {
		if end.LocalAddr() != nil { // otherwise there was no connection, and nothing is under way
			<-end.Done()
		}
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	for _, l := range q.late {
		_ = l.cq.add(added{WC: l.wc}, true)
	}
	q.late = nil
}

// drop forgets the completions that a QP that is destroyed would still have had. Its CQs may be destroyed next.
func (q *QP) drop() {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.late, q.asleep = nil, nil
}

// An added completion is one that package iwarp does not know of.
type added struct {
	WC
	sent *atomic.Int32 // of what is outstanding until the program has the completion, or nil
}

// add appends a completion to those of package iwarp, and reports whether the CQ had room: otherwise it is dropped. Whether it is one that was
// solicited, or in error, decides about an event for those who have asked for no others.
func (c *CQ) add(a added, solicited bool) (room bool) {
	c.polling.Lock()
	if room = len(c.late) < c.cq.Depth(); room {
		c.late = append(c.late, a)
	}
	c.polling.Unlock()
	if c.channel != nil {
		c.wakeFor(solicited)
	}
	return room
}

// takeLate moves the oldest of what was added to wcs. The caller holds c.polling.
func (c *CQ) takeLate(wcs []WC) int {
	n := min(len(wcs), len(c.late))
	for i, a := range c.late[:n] {
		wcs[i] = a.WC
		if a.sent != nil {
			a.sent.Add(-1)
		}
	}
	c.late = slices.Delete(c.late, 0, n)
	return n
}

// wakeFor tells the channel of a completion, if the program has asked for that.
func (c *CQ) wakeFor(solicited bool) {
	if solicited && c.armed.Swap(disarmed) != disarmed || c.armed.CompareAndSwap(armedAny, disarmed) {
		c.channel.events.push(c.token)
	}
}
