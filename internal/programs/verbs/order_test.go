//go:build linux && (amd64 || arm64)

package verbs

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
)

// An ending is what the program of one end does about a connection whose peer ends: three threads post and poll, end
// the peer, and have the QP go to ERR.
type ending struct {
	*queue
	r            *region
	sends, recvs uint64 // posted
	all          []WC
	random       *rand.Rand
}

// post posts a Send and a receive, where the queues have room.
func (e *ending) post() {
	if _, errno := e.d.PostSend(e.qp, &SendWR{ID: 100 + e.sends, SGL: e.r.sge(), SGEs: 1,
		Opcode: wrSend}); errno == fine {
		e.sends++
	} else {
		want(e.t, "a Send", errno, syscall.ENOMEM)
	}
	if _, errno := e.d.PostRecv(e.qp, &RecvWR{ID: e.recvs, SGL: e.r.sge(), SGEs: 1}); errno == fine {
		e.recvs++
	} else {
		want(e.t, "a receive", errno, syscall.ENOMEM)
	}
}

// poll takes some completions, and reports whether there were any.
func (e *ending) poll() bool {
	wcs := make([]WC, 1+e.random.IntN(3))
	n := e.d.Poll(e.cq, wcs)
	e.all = append(e.all, wcs[:n]...)
	return n > 0
}

// rest takes the completions of all that was posted.
func (e *ending) rest() {
	for uint64(len(e.all)) < e.sends+e.recvs {
		if !e.poll() {
			e.all = append(e.all, e.completion())
		}
	}
}

func giveWay(times int) {
	for range times {
		schedYield()
	}
}

// TestFlushedInOrder: whenever the peer ends, and the program posts, polls, and has the QP go to ERR, and whatever of
// that meets in time, each request is completed once, those of one queue in order: what has succeeded before what has
// not.
func TestFlushedInOrder(t *testing.T) {
	for _, guise := range []string{"RoCE", "iWARP"} {
		t.Run(guise, func(t *testing.T) {
			for round := range 200 {
				if t.Failed() {
					break
				}
				flushedInOrder(t, guise, round)
			}
		})
	}
}

func flushedInOrder(t *testing.T, guise string, round int) {
	var a, b *queue
	if guise == "RoCE" {
		a, b = met(t)
	} else {
		a, b, _, _ = connect(t)
	}
	e := &ending{queue: a, r: a.region("text", accessLocalWrite), random: rand.New(rand.NewPCG(1, uint64(round)))}
	for range 3 {
		b.recv(0, b.region("....", accessLocalWrite))
	}
	for range 8 {
		e.post()
	}
	e.meets(b)
	e.post()
	e.rest()
	inOrder(t, e.all)
}

// meets posts and polls while the peer ends, and the QP goes to ERR.
func (e *ending) meets(peer *queue) {
	var threads sync.WaitGroup
	var destroyed, erred syscall.Errno
	before, errs := e.random.IntN(40), e.random.IntN(40)
	threads.Go(func() {
		giveWay(before)
		destroyed = peer.d.DestroyQP(peer.qp)
	})
	threads.Go(func() {
		giveWay(errs)
		erred = e.d.ModifyQP(e.qp, StateErr)
	})
	for range 8 {
		giveWay(e.random.IntN(10))
		e.poll()
		e.post()
	}
	threads.Wait()
	must(e.t, destroyed)
	must(e.t, erred)
}

// inOrder wants each queue to be completed in order, with nothing that has succeeded, or tells of the end, after what
// has failed.
func inOrder(t *testing.T, all []WC) {
	t.Helper()
	next, failed := map[bool]uint64{true: 100}, map[bool]bool{}
	for _, wc := range all {
		send := wc.ID >= 100
		if wc.ID != next[send] || wc.Status == 0 && failed[send] || wc.Status == statusRetryExceeded && failed[send] {
			t.Fatalf("out of order: %v", toldOf(all))
		}
		next[send]++
		failed[send] = failed[send] || wc.Status != 0
	}
}

func toldOf(all []WC) (s []string) {
	for _, wc := range all {
		s = append(s, fmt.Sprintf("%d: %d", wc.ID, wc.Status))
	}
	return s
}
