//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// said has a queue that is connected to itself send, and returns both completions: that of the Send and that of the
// receive.
func (q *queue) said(text string) (send, recv WC) {
	q.t.Helper()
	to := q.region("....", accessLocalWrite)
	q.recv(2, to)
	q.send(1, wrSend, q.region(text, 0), nil)
	for range 2 {
		switch wc := q.completion(); wc.ID {
		case 1:
			send = wc
		case 2:
			recv = wc
		}
	}
	want(q.t, "bytes", string(to.memory), text)
	return send, recv
}

// TestMeetItself connects a QP to itself: what it sends it receives, and it writes and reads its own memory.
func TestMeetItself(t *testing.T) {
	q := roce(t)
	early := q.region("....", accessLocalWrite)
	q.recv(7, early)
	q.meet(q.number)
	q.send(8, wrSend, q.region("soon", 0), nil)
	for range 2 {
		want(t, "status", q.completion().Status, 0)
	}
	want(t, "bytes", string(early.memory), "soon")
	send, recv := q.said("self")
	want(t, "Send", send, WC{ID: 1, ByteLen: 4, QPNum: q.number})
	want(t, "receive", recv, WC{ID: 2, Opcode: wcRecv, ByteLen: 4, QPNum: q.number})
	mine := q.region("....", accessLocalWrite|accessRemoteWrite|accessRemoteRead)
	q.send(3, wrWrite, q.region("here", 0), mine)
	want(t, "Write", q.completion().Status, 0)
	want(t, "bytes", string(mine.memory), "here")
	back := q.region("....", accessLocalWrite)
	q.send(4, wrRead, back, mine)
	want(t, "Read", q.completion().Status, 0)
	want(t, "bytes", string(back.memory), "here")
	must(t, q.d.AllowQP(q.qp, 0))
	q.send(5, wrWrite, back, mine)
	if wc := q.completion(); wc.Status == 0 {
		t.Errorf("a Write that the QP does not allow: %+v", wc)
	}
}

// TestMeetItselfAgain: ERR flushes what is there, and after RESET the QP meets another, and itself again.
func TestMeetItselfAgain(t *testing.T) {
	a, b := roce(t), roce(t)
	a.meet(a.number)
	a.said("once")
	r := a.region("....", accessLocalWrite)
	a.recv(3, r)
	must(t, a.d.ModifyQP(a.qp, StateErr))
	wc := a.completion()
	want(t, "receive", [2]uint32{uint32(wc.ID), wc.Status}, [2]uint32{3, 5})
	a.send(4, wrSend, r, nil)
	want(t, "Send", a.completion().Status, 5)
	again := func() {
		must(t, a.d.ModifyQP(a.qp, StateReset))
		must(t, a.d.ModifyQP(a.qp, StateInit))
	}
	again()
	a.meet(b.number)
	b.meet(a.number)
	exchange(t, a, b)
	again()
	a.meet(a.number)
	a.said("more")
	again()
	must(t, a.d.DestroyQP(a.qp))
	must(t, a.d.DestroyCQ(a.cq))
}

// TestMeetItselfShared: its receives may be those of a Shared Receive Queue. After its end nothing of it is left.
func TestMeetItselfShared(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 10, 1, 1)
	must(t, errno)
	q := p.queueOf(srq)
	q.meet(q.number)
	to := q.region("....", accessLocalWrite)
	_, errno = p.d.PostSRQ(srq, &RecvWR{ID: 2, SGL: to.sge(), SGEs: 1})
	must(t, errno)
	from := q.region("text", 0)
	q.send(1, wrSend, from, nil)
	want(t, "completions", q.completion().ID+q.completion().ID, 3)
	want(t, "bytes", string(to.memory), "text")
	must(t, p.d.DestroyQP(q.qp))
	must(t, p.d.DestroyCQ(q.cq))
	must(t, p.d.DestroySRQ(srq))
	must(t, p.d.DeregisterMR(to.mr))
	must(t, p.d.DeregisterMR(from.mr))
	must(t, p.d.DeallocPD(p.pd))
	want(t, "PD", p.d.DeallocPD(p.pd), syscall.EINVAL)
}
