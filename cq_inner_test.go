package iwarp

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestAwaited: whoever waits for what a QP brings and does not receive for itself is known to the consumer that leaves,
// so that the next message finds somebody. Of a CQ that others use too it is not known who begins to wait.
func TestAwaited(t *testing.T) {
	rnic := new(RNIC)
	sends, recvs := &CQ{rnic: rnic}, &CQ{rnic: rnic}
	qp := &QP{sendCQ: sends, recvCQ: recvs}
	sends.only, recvs.only = qp, qp
	want := func(want bool, why string) {
		t.Helper()
		if (upcalls{qp}).Awaited() != want {
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

// TestOneLeads: a CQ's completions wake the consumer that receives on one connection. On another, as the QP's next one,
// none receives for the same CQ meanwhile.
func TestOneLeads(t *testing.T) {
	conn := func() *driver.Conn {
		a, b := testrig.Pipe("a", "b")
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		return driver.New(tcp.New(a), false, &driver.Config{})
	}
	first, next, cq := conn(), conn(), &CQ{rnic: new(RNIC)}
	want := func(c *driver.Conn, want bool, why string) {
		t.Helper()
		if (consumer{cq}).Sleep(c) != want {
			t.Errorf("%s: receives: %t", why, !want)
		}
	}
	want(first, true, "the first")
	want(next, false, "another while that receives")
	want(first, true, "the first goes on")
	consumer{cq}.Awake()
	want(next, true, "another after it")
}
