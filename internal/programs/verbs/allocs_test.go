//go:build linux && (amd64 || arm64)

package verbs

import (
	"runtime"
	"syscall"
	"testing"
)

// TestNoAllocations: in the steady state no post allocates, and no poll.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	a, b, _, _ := connect(t)
	onSRQ, srq, peer := metOnSRQ(t)
	var wcs [1]WC
	for name, run := range map[string]func(){
		"Send":         exchanged(a, b, 0, b.d.PostRecv, b.qp),
		"inline Send":  exchanged(a, b, sendInline, b.d.PostRecv, b.qp),
		"Send to SRQ":  exchanged(peer, onSRQ, 0, onSRQ.d.PostSRQ, srq),
		"Write":        oneSided(a, b, wrWrite, 0),
		"inline Write": oneSided(a, b, wrWrite, sendInline),
		"Read":         oneSided(a, b, wrRead, 0),
		"poll in vain": func() { want(t, "completions", a.d.Poll(a.cq, wcs[:]), 0) },
	} {
		for range 50 { // to the steady state
			run()
		}
		runtime.GC()
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// metOnSRQ is met with a Shared Receive Queue at one end.
func metOnSRQ(t *testing.T) (q *queue, srq Handle, peer *queue) {
	t.Helper()
	p, peer := newProgramWith(t, Config{RoCE: true}), roce(t)
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 8, 1, 5)
	must(t, errno)
	q = p.queueOf(srq)
	q.meet(peer.number)
	peer.meet(q.number)
	return q, srq, peer
}

// exchanged returns an operation: a Send, and the receive that is posted for it, with both completions.
func exchanged(from, to *queue, flags uint32, post func(Handle, *RecvWR) (*RecvWR, syscall.Errno), h Handle) func() {
	send := oneSided(from, to, wrSend, flags)
	receive := &RecvWR{SGL: to.region("................", accessLocalWrite).sge(), SGEs: 1}
	return func() {
		_, errno := post(h, receive)
		must(to.t, errno)
		send()
		to.polled()
	}
}

// oneSided returns an operation with its completion.
func oneSided(from, to *queue, opcode, flags uint32) func() {
	source, offered := from.region("bytes", accessLocalWrite),
		to.region("................", accessLocalWrite|accessRemoteRead|accessRemoteWrite)
	list := []SGE{*source.sge(), *source.sge()}
	wr := &SendWR{SGL: &list[0], SGEs: 1, Opcode: opcode, Flags: flags, RemoteAddr: offered.at(), RKey: offered.key}
	if flags&sendInline != 0 {
		wr.SGEs = 2
	}
	return func() {
		_, errno := from.d.PostSend(from.qp, wr)
		must(from.t, errno)
		from.polled()
	}
}

// polled polls until there is a completion.
func (q *queue) polled() {
	q.t.Helper()
	var wcs [1]WC
	for q.d.Poll(q.cq, wcs[:]) == 0 {
		runtime.Gosched()
	}
	want(q.t, "status", wcs[0].Status, 0)
}
