//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
)

// A QP in the state ERR takes requests, and flushes them: programs post until they hear of the end. Package iwarp
// refuses them, so that the completions are made here.

// A lateWC is the completion of a request that was posted after the end.
type lateWC struct {
	cq *CQ
	wc added
}

// over reports whether an error of a post is that of a connection that has ended, or is about to.
func (q *QP) over(err error) bool {
	return err != nil && (errors.Is(err, iwarp.ErrClosed) || q.departed())
}

// flushSends flushes a list. It is ENOMEM for the first that finds the queue full: as before the end, a request keeps
// its place until its completion is polled.
func (q *QP) flushSends(wr *SendWR) (bad *SendWR, errno syscall.Errno) {
	var late []lateWC
	real := q.sender().Query()
	for room := q.config.SendDepth - real.Sends - real.UnpolledSends; wr != nil &&
		room > int(q.lateSends.Load()); wr = wr.Next {
		l := lateWC{q.sendCQ, q.lateOf(&q.lateSends, wr.ID)}
		l.wc.of = q
		late = append(late, l)
	}
	q.flush(late)
	return wr, fullUnless(wr == nil)
}

// flushRecvs is the same for receives.
func (q *QP) flushRecvs(wr *RecvWR) (bad *RecvWR, errno syscall.Errno) {
	var late []lateWC
	real := q.qp.Query()
	for room := q.config.RecvDepth - real.Receives - real.UnpolledReceives; wr != nil &&
		room > int(q.lateRecvs.Load()); wr = wr.Next {
		late = append(late, lateWC{q.recvCQ, q.lateOf(&q.lateRecvs, wr.ID)})
	}
	if q.meets() {
		q.sleepLate(late...)
	} else {
		q.flush(late)
	}
	return wr, fullUnless(wr == nil)
}

func fullUnless(all bool) syscall.Errno {
	if all {
		return fine
	}
	return syscall.ENOMEM
}

// lateOf is the completion of a request that was flushed, which is counted until the program has it.
func (q *QP) lateOf(count *atomic.Int32, id uint64) added {
	count.Add(1)
	return added{WC: q.flushed(id), sent: count}
}

// flushed is what is valid of a completion in error.
func (q *QP) flushed(id uint64) WC {
	return WC{ID: id, Status: statusOf(iwarp.StatusFlushed), QPNum: q.number}
}

// flush completes requests after all that were posted before the end.
func (q *QP) flush(late []lateWC) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.flushLocked(late)
}

func (q *QP) flushLocked(late []lateWC) {
	if len(q.late) == 0 && len(late) > 0 {
		go q.afterEnd()
	}
	q.late = append(q.late, late...)
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
	q.giving.Lock()
	defer q.giving.Unlock()
	late := q.takeFlushed()
	q.rouse()
	for _, l := range late {
		l.cq.complete(l.wc, true)
	}
}

// takeFlushed takes what is to be completed. Its CQs are locked after that.
func (q *QP) takeFlushed() (late []lateWC) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	late, q.late = q.late, nil
	return late
}

// forget drops the completions of a QP that is destroyed or goes to RESET: those that its CQs have, and those still to
// come. Programs look for the QP of each completion, and have none any more. Its CQs may be destroyed next.
func (q *QP) forget() {
	q.drop()
	q.sendCQ.forget(q, q.number)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.forget(q, q.number)
	}
}

// drop drops those that are still to come.
func (q *QP) drop() {
	q.giving.Lock()
	defer q.giving.Unlock()
	q.recvCQ.polling.Lock()
	q.asleep = nil
	q.recvCQ.polling.Unlock()
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.late, q.lateAsleep, q.lastWQE = nil, nil, lastNot
}

// An added completion is one that package iwarp does not know of.
type added struct {
	WC
	sent *atomic.Int32 // of what is outstanding until the program has the completion, or nil
	of   *QP           // whose Send, or the like, was flushed; nil of others
}

// complete adds a completion. A CQ without room has overflowed, which the program is told.
func (c *CQ) complete(a added, solicited bool) {
	if !c.add(a, solicited) {
		c.raise(asyncCQError)
	}
}

// add appends a completion to those of package iwarp, and reports whether the CQ had room: otherwise it is dropped, as
// all are after that. Whether it is one that was solicited, or in error, decides about an event for those who have
// asked for no others.
func (c *CQ) add(a added, solicited bool) (room bool) {
	overflowed := c.overflowed()
	c.polling.Lock()
	defer c.polling.Unlock()
	if room = !overflowed && c.room() > 0; room {
		c.late = append(c.late, a)
	} else {
		a.givePlace()
	}
	c.wakeFor(solicited)
	return room
}

// room is how many more completions there may be, of package iwarp and others. The caller holds CQ.polling.
func (c *CQ) room() int { return c.cq.Depth() - emulation.Waiting(c.cq) - len(c.early) - len(c.late) }

// trim drops what has no room beside completions of package iwarp, which does not know of the others, and reports
// whether there was any. The caller holds CQ.polling.
func (c *CQ) trim() (overflowed bool) {
	if len(c.early)+len(c.late) == 0 {
		return false
	}
	more := max(-c.room(), 0)
	for _, from := range []*[]added{&c.late, &c.early} {
		keep := max(len(*from)-more, 0)
		for _, a := range (*from)[keep:] {
			a.givePlace()
			more--
			overflowed = true
		}
		*from = slices.Delete(*from, keep, len(*from))
	}
	return overflowed
}

// givePlace gives the place in the queue back that the request has kept.
func (a *added) givePlace() {
	if a.sent != nil {
		a.sent.Add(-1)
	}
}

// moveOldest moves the oldest of a list of completions to wcs. The caller holds CQ.polling.
func moveOldest(wcs []WC, from *[]added) int {
	n := min(len(wcs), len(*from))
	for i, a := range (*from)[:n] {
		wcs[i] = a.WC
		if a.of != nil {
			wcs[i].Status = a.of.failed()
		}
		a.givePlace()
	}
	*from = slices.Delete(*from, 0, n)
	return n
}

// wakeFor tells the channel of a completion, if the program has asked for that. It uses up what was asked for, as those
// of package iwarp do: one event for both. The caller holds CQ.polling: who has polled the completion may ask for the
// next event, which is another.
func (c *CQ) wakeFor(solicited bool) {
	if c.channel != nil && emulation.Disarm(c.cq, solicited) {
		c.channel.events.push(c.token)
	}
}
