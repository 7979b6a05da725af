//go:build linux && (amd64 || arm64)

package verbs

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// noticed waits for an event of the completion channel.
func (q *queue) noticed() {
	q.t.Helper()
	wait(q.t, q.fd)
	_, errno := q.d.NextCQ(q.completions)
	must(q.t, errno)
}

// TestOneArmOneEvent: of a request that is flushed here, and a receive that package iwarp completes, the first gives
// the event that was asked for, and the other none. Who asks twice has two.
func TestOneArmOneEvent(t *testing.T) {
	dead, _ := met(t)
	live, peer := dead.beside(), roce(t)
	live.meet(peer.number)
	peer.meet(live.number)
	must(t, dead.d.ModifyQP(dead.qp, StateErr))
	text := dead.region("text", accessLocalWrite)
	flush := func(id uint64) { dead.send(id, wrSend, text, nil) }
	receive := func(id uint64) {
		live.recv(id, text)
		peer.send(id, wrSend, peer.region("news", 0), nil)
	}
	for _, first := range []bool{true, false} {
		one, other := flush, receive
		if !first {
			one, other = receive, flush
		}
		must(t, dead.d.Arm(dead.cq, false))
		one(1)
		dead.noticed()
		other(2)
		var wcs [4]WC
		n := 0
		until(t, "both completions", func() bool { n += dead.d.Poll(dead.cq, wcs[n:]); return n == 2 })
		want(t, "an event that was not asked for", readable(t, dead.fd), false)
		must(t, dead.d.Arm(dead.cq, false))
		other(3)
		dead.noticed()
		want(t, "an event that was not asked for", readable(t, dead.fd), false)
		until(t, "the third", func() bool { return dead.d.Poll(dead.cq, wcs[:1]) == 1 })
	}
}

// hasEvents waits for so many events of the completion channel, and there must be no more.
func (q *queue) hasEvents(n int) {
	q.t.Helper()
	got := 0
	until(q.t, "an event for each time that one was asked for", func() bool {
		if _, errno := q.d.NextCQ(q.completions); errno != syscall.EAGAIN {
			must(q.t, errno)
			got++
		}
		return got == n
	})
	want(q.t, "an event that was not asked for", readable(q.t, q.fd), false)
}

// TestEachArmHasItsEvent: a program that polls a completion, and asks for the next event before it has fetched that of
// the first, has both.
func TestEachArmHasItsEvent(t *testing.T) {
	const times = 8
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // whatever passes notices on waits for its turn
	q := newProgram(t).queue()
	var all []*queue
	for range times {
		all = append(all, q.beside())
	}
	for _, one := range all {
		one.recv(1, one.region("text", accessLocalWrite))
		must(t, q.d.Arm(q.cq, false))
		must(t, q.d.ModifyQP(one.qp, StateErr))
		want(t, "completions", q.d.Poll(q.cq, make([]WC, 1)), 1)
	}
	q.hasEvents(times)
}

// TestEachArmHasItsEventOfOthers is the same for completions that package iwarp does not know of. The poll gets the CQ's
// lock from whoever has just added one: a mutex is handed over so to one that has waited for more than a millisecond, if
// the one before has, too.
func TestEachArmHasItsEventOfOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	q := newProgram(t).queue()
	c, othersRun := q.inner().recvCQ, func() { time.Sleep(2 * time.Millisecond) }
	add := func() { c.complete(added{}, false) }
	c.polling.Lock()
	must(t, q.d.Arm(q.cq, false))
	go add()
	othersRun()
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		for q.d.Poll(q.cq, make([]WC, 1)) == 0 {
			runtime.Gosched()
		}
		q.d.Arm(q.cq, false)
	}()
	othersRun()
	c.polling.Unlock()
	c.polling.Lock() // before the one that adds, who is woken now and has the lock next
	othersRun()
	c.polling.Unlock()
	<-polled
	add()
	q.hasEvents(2)
}

// TestSolicitedWithoutMeaning: the flag is for what completes at the peer, and means nothing with the rest.
func TestSolicitedWithoutMeaning(t *testing.T) {
	a, b := met(t)
	to := b.region("12345678", accessLocalWrite|accessRemoteWrite|accessRemoteRead|accessRemoteAtomic)
	r := a.region("........", accessLocalWrite)
	for id, opcode := range []uint32{wrRead, wrWrite, wrFetchAdd, wrCompareSwap} {
		wr := &SendWR{ID: uint64(id), SGL: r.sge(), SGEs: 1, Opcode: opcode, Flags: sendSolicited,
			RemoteAddr: to.at(), RKey: to.key}
		if opcode == wrFetchAdd || opcode == wrCompareSwap {
			*wr.atomic() = atomicArgs{RemoteAddr: to.at(), RKey: to.key}
		}
		_, errno := a.d.PostSend(a.qp, wr)
		must(t, errno)
		wc := a.completion()
		want(t, "completion", [2]uint64{wc.ID, uint64(wc.Status)}, [2]uint64{uint64(id), 0})
	}
}
