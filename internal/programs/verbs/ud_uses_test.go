//go:build linux && (amd64 || arm64)

package verbs

import (
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

// TestDatagramUses: a QP with a CQ for each direction keeps both, and its Protection Domain. After RESET neither CQ has
// anything of it.
func TestDatagramUses(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	other := p.datagrams()
	pd, errno := p.d.AllocPD()
	must(t, errno)
	cqs := [2]Handle{}
	for i := range cqs {
		cqs[i], errno = p.d.CreateCQ(p.context, 0, 8, 0)
		must(t, errno)
	}
	u := &datagrams{queue: &queue{program: p}}
	u.qp, u.number, errno = p.d.CreateUD(QPAttr{Context: p.context, PD: pd, SendCQ: cqs[0], RecvCQ: cqs[1],
		SendDepth: 1, RecvDepth: 1, RecvSGEs: 1})
	must(t, errno)
	stays := func(expected syscall.Errno) {
		t.Helper()
		for _, cq := range cqs {
			want(t, "CQ", p.d.DestroyCQ(cq), expected)
		}
		want(t, "PD", p.d.DeallocPD(pd), expected)
	}
	stays(syscall.EBUSY)

	u.steps(StateInit, StateErr)
	_, errno = p.d.RecvDatagrams(u.qp, &RecvWR{ID: 1})
	must(t, errno)
	_, errno = p.d.SendDatagrams(u.qp, other.to(other.number))
	must(t, errno)
	u.steps(StateReset)
	for i, cq := range cqs {
		var wcs [2]WC
		if n := p.d.Poll(cq, wcs[:]); n != 0 {
			t.Errorf("CQ %d has %d completions of a QP in RESET", i, n)
		}
	}
	must(t, p.d.DestroyUD(u.qp))
	stays(fine)
}

// TestDatagramScattered has a receive of several elements, one without bytes among them: each gets what it has room
// for.
func TestDatagramScattered(t *testing.T) {
	q := newDatagrams(t)
	u := &datagrams{queue: &queue{program: q.program, cq: q.cq, completions: q.completions, fd: q.fd}}
	var errno syscall.Errno
	u.qp, u.number, errno = q.d.CreateUD(QPAttr{Context: q.context, PD: q.pd, SendCQ: q.cq, RecvCQ: q.cq,
		RecvDepth: 1, RecvSGEs: 3})
	must(t, errno)
	u.steps(StateInit, StateRTR)
	must(t, u.d.SetQKey(u.qp, testQKey))
	first, second := u.region(strings.Repeat(".", datagram.RouteLen+2), accessLocalWrite),
		u.region("........", accessLocalWrite)
	list := [3]SGE{*first.sge(), {}, *second.sge()}
	_, errno = u.d.RecvDatagrams(u.qp, &RecvWR{ID: 2, SGL: &list[0], SGEs: 3})
	must(t, errno)
	text := q.region("question", 0)
	must(t, q.post(q.to(u.number, *text.sge())))
	want(t, "status", q.received(2).Status, 0)
	want(t, "bytes", string(first.memory[datagram.RouteLen:])+" "+string(second.memory), "qu estion..")
}

// TestDatagramPorts: QPs of datagrams and connected ones have numbers of ports of their own, whichever comes first.
func TestDatagramPorts(t *testing.T) {
	for _, datagramsFirst := range []bool{true, false} {
		p := newProgramWith(t, Config{RoCE: true})
		var u *datagrams
		if datagramsFirst {
			u = p.datagrams()
		}
		connected := p.queue()
		if !datagramsFirst {
			u = p.datagrams()
		}
		if u.number>>8 == connected.number>>8 || connected.number>>8 == 0 {
			t.Errorf("%#x and %#x", u.number, connected.number)
		}
	}
}

// TestDatagramMost: a QP may be as large as the bounds say. One for which there is no Handle left takes no number.
func TestDatagramMost(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	q := p.datagrams()
	most := QPAttr{Context: p.context, PD: p.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: iwarp.MaxQueueDepth,
		RecvDepth: 1, MaxInline: datagram.MTU}
	_, _, errno := p.d.CreateUD(most)
	must(t, errno)
	inUse := p.d.ports.datagrams[0].inUse
	p.d.uds.next = maxIndex
	_, _, errno = p.d.CreateUD(most)
	want(t, "no Handle", errno, syscall.ENOMEM)
	want(t, "numbers in use", p.d.ports.datagrams[0].inUse, inUse)
}
