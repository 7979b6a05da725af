//go:build linux && (amd64 || arm64)

package verbs

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// TestPostInErr: what is posted after the program has had a QP go to ERR is taken and flushed, in order, after what was
// posted before, and nothing of it is carried out. So it is on a connection that is up, on one that is coming, and
// where there is no peer.
func TestPostInErr(t *testing.T) {
	for _, peer := range []string{"up", "self", "coming", "nobody"} {
		t.Run(peer, func(t *testing.T) {
			a, b := byNumber(roce(t), roce(t))
			switch peer {
			case "up":
				a.meet(b.number)
				b.meet(a.number)
				exchange(t, a, b)
			case "self":
				a.meet(a.number)
			case "coming":
				a.meet(b.number)
			case "nobody":
				a.meet(ulpdata.QPNumberMask)
			}
			to := b.region("none", accessLocalWrite)
			b.recv(9, to)
			r := a.region("text", accessLocalWrite)
			a.recv(1, r)
			must(t, a.d.ModifyQP(a.qp, StateErr))
			for id := range uint64(8) {
				a.send(2+id, wrSend, r, nil)
				a.recv(10+id, r)
			}
			a.flushes(2, 10)
			want(t, "bytes", string(to.memory), "none")
		})
	}
}

// flushes takes completions until 8 Sends from an ID on, and 1 and 8 receives, have been flushed, each kind in order.
func (q *queue) flushes(send, recv uint64) {
	q.t.Helper()
	recvs := []uint64{1}
	var sends []uint64
	for id := range uint64(8) {
		sends, recvs = append(sends, send+id), append(recvs, recv+id)
	}
	for len(sends)+len(recvs) > 0 {
		wc := q.completion()
		want(q.t, "status", wc.Status, 5)
		if len(sends) > 0 && wc.ID == sends[0] {
			sends = sends[1:]
		} else {
			want(q.t, "receive", wc.ID, recvs[0])
			recvs = recvs[1:]
		}
	}
}

// TestLocksInOrder: what is flushed waits for a CQ that is being polled, and neither the poll nor a post waits for it.
func TestLocksInOrder(t *testing.T) {
	a := roce(t)
	q := a.inner()
	q.sendCQ.polling.Lock()
	q.flush([]lateWC{{q.sendCQ, q.lateOf(&q.lateSends, 1)}})
	taken := func() bool { // in order to be completed
		if !q.flushing.TryLock() {
			return false
		}
		defer q.flushing.Unlock()
		return len(q.late) == 0
	}
	until(t, "that a poll could go on which finds what was flushed", taken)
	q.sleepLate(lateWC{q.recvCQ, q.lateOf(&q.lateRecvs, 2)})
	q.sendCQ.polling.Unlock()
	want(t, "what was flushed", a.completion().ID, 1)
	must(t, a.d.ModifyQP(a.qp, StateErr))
	q.wake()
	want(t, "what has slept", a.completion().ID, 2)
}
