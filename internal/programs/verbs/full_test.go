//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// TestFullAfterEnd: a QP in ERR, of either guise, takes no more than its queues hold, as before: requests that were
// posted before and after count until their completions are polled. Programs post until ENOMEM.
func TestFullAfterEnd(t *testing.T) {
	for _, guise := range []string{"RoCE", "iWARP"} {
		t.Run(guise, func(t *testing.T) {
			var a *queue
			if guise == "RoCE" {
				a, _ = met(t)
			} else {
				a, _, _, _ = connect(t)
			}
			r := a.region("text", accessLocalWrite)
			for id := range uint64(16) {
				a.recv(id, r)
			}
			must(t, a.d.ModifyQP(a.qp, StateErr))
			_, errno := a.d.PostRecv(a.qp, &RecvWR{ID: 90})
			want(t, "a receive", errno, syscall.ENOMEM)
			for id := range uint64(15) {
				a.send(100+id, wrSend, r, nil)
			}
			more := &SendWR{ID: 92, Opcode: wrSend}
			bad, errno := a.d.PostSend(a.qp, &SendWR{ID: 115, Opcode: wrSend, Next: more})
			want(t, "two where there is room for one", errno, syscall.ENOMEM)
			want(t, "the second", bad, more)
			recvs, sends := uint64(0), uint64(100)
			for range 32 {
				wc := a.completion()
				want(t, "status", wc.Status, 5)
				if wc.ID < 100 {
					want(t, "receive", wc.ID, recvs)
					recvs++
				} else {
					want(t, "Send", wc.ID, sends)
					sends++
				}
				_, errno := a.d.PostRecv(a.qp, &RecvWR{ID: 16 + wc.ID})
				want(t, "a receive in place of one", errno == fine, wc.ID < 100)
				if recvs == 16 && sends == 116 {
					break
				}
			}
			for id := range uint64(16) {
				want(t, "receive", a.completion().ID, 16+id)
			}
		})
	}
}

// TestLostAfterEnd: a completion after the end for which a CQ has no room is told of, as before.
func TestLostAfterEnd(t *testing.T) {
	a, _ := met(t)
	must(t, a.d.ResizeCQ(a.cq, 4))
	must(t, a.d.ModifyQP(a.qp, StateErr))
	for id := range uint64(7) {
		a.send(id, wrSend, a.region("text", 0), nil)
	}
	wait(t, a.async)
	e, errno := a.d.NextAsync(a.context)
	must(t, errno)
	want(t, "event", e, AsyncEvent{asyncCQError, 77})
	for id := range uint64(4) {
		want(t, "a Send", a.completion().ID, id)
	}
	_, errno = a.d.NextAsync(a.context)
	want(t, "another event", errno, syscall.EAGAIN)
}

// TestSendsFullAfterEnd: Sends that were carried out before the end count as well, until their completions are polled.
func TestSendsFullAfterEnd(t *testing.T) {
	for _, guise := range []string{"RoCE", "iWARP"} {
		t.Run(guise, func(t *testing.T) {
			var a, b *queue
			if guise == "RoCE" {
				a, b = met(t)
			} else {
				a, b, _, _ = connect(t)
			}
			got, r := b.region("....", accessLocalWrite), a.region("text", 0)
			for id := range uint64(10) {
				b.recv(id, got)
				a.send(id, wrSend, r, nil)
			}
			until(t, "the completions", func() bool { return a.inner().qp.Query().UnpolledSends == 10 })
			must(t, a.d.ModifyQP(a.qp, StateErr))
			for id := range uint64(6) {
				a.send(10+id, wrSend, r, nil)
			}
			_, errno := a.d.PostSend(a.qp, &SendWR{ID: 90, Opcode: wrSend})
			want(t, "one more", errno, syscall.ENOMEM)
			want(t, "a Send", a.completion().ID, 0)
			a.send(16, wrSend, r, nil)
			for id := range uint64(16) {
				want(t, "a Send", a.completion().ID, 1+id)
			}
		})
	}
}
