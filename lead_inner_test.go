package iwarp

import (
	"testing"
)

// TestAwaited: whoever waits for what a QP brings and does not receive for itself is known to the consumer that leaves, so that the next message finds somebody.
// Of a CQ that others use too it is not known who begins to wait.
func TestAwaited(t *testing.T) {
	sends, recvs := new(CQ), new(CQ)
	qp := &QP{sendCQ: sends, recvCQ: recvs}
	sends.only, recvs.only = qp, qp
	want := func(want bool, why string) {
		t.Helper()
		if qp.awaited() != want {
			t.Errorf("%s: awaited: %v", why, !want)
		}
	}
	want(false, "nobody")
	for name, cq := range map[string]*CQ{"send": sends, "receive": recvs} {
		cq.waiters++
		want(true, "in Wait of the CQ of the Send or Receive Queue: "+name)
		cq.waiters--
		cq.Arm(true)
		want(true, "a notice is asked for: "+name)
		cq.arm = armedNot
		cq.only = nil
		want(true, "a CQ of several: "+name)
		cq.only = qp
	}
	qp.callers.Add(1)
	want(true, "in Read")
	qp.callers.Add(-1)
	want(false, "nobody any more")
}
