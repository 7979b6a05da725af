//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// writes is a list of n Writes of a region, the last of which may be wrong.
func writes(n int, r, to *region, wrong bool) *SendWR {
	var list *SendWR
	for id := n; id > 0; id-- {
		list = &SendWR{ID: uint64(id), Next: list, SGL: r.sge(), SGEs: 1, Opcode: wrWrite,
			RemoteAddr: to.at(), RKey: to.key}
		if wrong && id == n {
			list.Opcode = 99
		}
	}
	return list
}

// TestPostAll posts a list as a whole, or nothing of it: with a request that is wrong, also beyond those that are
// translated at a time, and where there is no room for all. It is the same when the QP is in ERR.
func TestPostAll(t *testing.T) {
	a, b := byNumber(roce(t), roce(t))
	a.meet(b.number)
	b.meet(a.number)
	r, to := a.region("text", accessLocalWrite), b.region("none", accessLocalWrite|accessRemoteWrite)
	refused := func() {
		t.Helper()
		want(t, "more than there is room for", a.d.PostAll(a.qp, writes(17, r, to, false)), syscall.ENOMEM)
		var wc [1]WC
		want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
	}
	complete := func(n int, status uint32) {
		t.Helper()
		must(t, a.d.PostAll(a.qp, writes(n, r, to, false)))
		for id := range n {
			wc := a.completion()
			want(t, "request", wc.ID, uint64(id+1))
			want(t, "status", wc.Status, status)
		}
	}
	refused()
	for _, n := range []int{1, 2, 16} {
		want(t, "a list with one that is wrong", a.d.PostAll(a.qp, writes(n, r, to, true)), syscall.EINVAL)
	}
	want(t, "bytes", string(to.memory), "none")
	for _, n := range []int{1, 2, 16} {
		complete(n, 0)
	}
	want(t, "bytes", string(to.memory), "text")
	must(t, a.d.ModifyQP(a.qp, StateErr))
	refused()
	complete(16, 5)
	want(t, "a QP that is not there", a.d.PostAll(0, writes(1, r, to, false)), syscall.EINVAL)
}

// TestPostAllRoom: in ERR, too, requests whose completions were not polled take room, whether they were posted before,
// and are complete or not, or were flushed, and nothing of a list is flushed that is longer than the rest.
func TestPostAllRoom(t *testing.T) {
	for _, name := range []string{"posted before", "complete before", "flushed"} {
		t.Run(name, func(t *testing.T) {
			a, b := byNumber(roce(t), roce(t))
			a.meet(b.number)
			b.meet(a.number)
			r, to := a.region("text", accessLocalWrite), b.region("none", accessLocalWrite|accessRemoteWrite)
			if name != "flushed" {
				must(t, a.d.PostAll(a.qp, writes(10, r, to, false)))
			}
			if name == "complete before" {
				until(t, "the completions", func() bool { return a.inner().qp.Query().UnpolledSends == 10 })
			}
			must(t, a.d.ModifyQP(a.qp, StateErr))
			if name == "flushed" {
				must(t, a.d.PostAll(a.qp, writes(10, r, to, false)))
			}
			want(t, "more than there is room for", a.d.PostAll(a.qp, writes(7, r, to, false)), syscall.ENOMEM)
			must(t, a.d.PostAll(a.qp, writes(6, r, to, false)))
			for _, n := range []int{10, 6} {
				for id := range n {
					want(t, "request", a.completion().ID, uint64(id+1))
				}
			}
		})
	}
}

// TestSendAllDatagrams is the same for datagrams.
func TestSendAllDatagrams(t *testing.T) {
	a, b := newDatagrams(t), newDatagrams(t)
	r := a.region("text", accessLocalWrite)
	list := func(n int, wrong bool) (first *SendWR) {
		for id := n; id > 0; id-- {
			wr := a.to(b.number, *r.sge())
			wr.ID, wr.Next = uint64(id), first
			if wrong && id == n {
				wr.Opcode = wrWrite
			}
			first = wr
		}
		return first
	}
	want(t, "a list with one that is wrong", a.d.SendAllDatagrams(a.qp, list(4, true)), syscall.EINVAL)
	want(t, "more than there is room for", a.d.SendAllDatagrams(a.qp, list(17, false)), syscall.ENOMEM)
	var wc [1]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
	must(t, a.d.SendAllDatagrams(a.qp, list(16, false)))
	for id := range uint64(16) {
		want(t, "request", a.completion().ID, id+1)
	}
	must(t, a.d.ModifyUD(a.qp, StateErr))
	must(t, a.d.SendAllDatagrams(a.qp, list(2, false)))
	want(t, "status", a.completion().Status, 5)
	want(t, "a QP that is not there", a.d.SendAllDatagrams(0, list(1, false)), syscall.EINVAL)
}
