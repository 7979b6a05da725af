package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestQPsLeave closes QPs of a CQ in any order: what is committed is that of those that are left, and the CQ can be closed
// when none is.
//
// Proves Z24.
func TestQPsLeave(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		cq := newCQ(t, rnic, 1000)
		var qps [3]*iwarp.QP
		committed := 0
		for i, depth := range [...]int{1, 10, 100} {
			qps[i] = create(t, pd, iwarp.QPConfig{SendCQ: cq, SendDepth: depth, RecvDepth: depth})
			committed += 2 * depth
		}
		for _, i := range order {
			if err := cq.Close(); err == nil {
				t.Fatalf("%v: closed while it is used", order)
			}
			committed -= 2 * [...]int{1, 10, 100}[i]
			should(t, qps[i].Close())
			if got := cq.Committed(); got != committed {
				t.Errorf("%v: %d committed without QP %d, want %d", order, got, i, committed)
			}
		}
		should(t, cq.Close())
	}
}

// TestPolledTogether polls completions of two QPs at once: each has the places of its own requests again.
//
// Proves Z23.
func TestPolledTogether(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	cq, pd := newCQ(t, rnic, 4), newPD(t, rnic)
	var qps [2]*iwarp.QP
	for i := range qps {
		qps[i] = create(t, pd, iwarp.QPConfig{SendCQ: cq, SendDepth: 1, RecvDepth: 1})
	}
	for range 2 {
		for _, qp := range qps {
			must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
			must(t, qp.PostRecv(&iwarp.RecvWR{}))
			must(t, qp.Modify(iwarp.StateError)) // flushes both
		}
		var wc [5]iwarp.WC
		if n := cq.Poll(wc[:]); n != 4 {
			t.Fatalf("%d completions", n)
		}
		for _, qp := range qps {
			must(t, qp.Modify(iwarp.StateIdle))
		}
	}
}
