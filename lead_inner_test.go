package iwarp

import (
	"net"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
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

// A nap is what a consumer waits for that does not come: someone interrupts it at once, and then there is nothing to wait for any more.
type nap struct{ interrupted bool }

func (n *nap) sleep(c *tcp.Conn) (sleeps bool) {
	sleeps, n.interrupted = n.interrupted, false
	if sleeps {
		c.Announce()
		c.Interrupt()
	}
	return sleeps
}

func (*nap) awake() {}

// leadable returns a QP whose receiving goroutine stands back, and its socket.
func leadable(t *testing.T) (*QP, *net.TCPConn) {
	t.Helper()
	a, _ := sockets(t)
	cq := new(CQ)
	qp := &QP{sendCQ: cq, recvCQ: cq, conn: tcp.New(a)}
	cq.only = qp
	if !qp.conn.CanStandBack() {
		t.Skip("the receiving goroutine always reads here")
	}
	over := make(chan struct{})
	go func() { qp.conn.StandBack(); close(over) }()
	t.Cleanup(func() { _ = qp.conn.Close(); <-over })
	for ctx := testrig.Within(t); !qp.conn.Take(); runtime.Gosched() {
		testrig.Must(t, ctx.Err())
	}
	qp.conn.Leave(false, false)
	return qp, a
}

// TestInterruptedWithholds: a consumer that was interrupted, as the completions that it waits for do not come by the connection, leaves the role to the
// receiving goroutine alone; one that was not leaves it to the next consumer.
func TestInterruptedWithholds(t *testing.T) {
	qp, _ := leadable(t)
	for _, interrupted := range []bool{false, true} {
		n := nap{interrupted}
		if qp.leadFor(t.Context(), &n); n.interrupted {
			t.Fatal("the consumer did not have the role")
		}
		taken := qp.conn.Take()
		if taken == interrupted {
			t.Errorf("interrupted: %t, and the next consumer has the role: %t", interrupted, taken)
		}
		if taken {
			qp.conn.Leave(false, false)
		}
	}
}

// TestOneLeads: a CQ's completions wake the consumer that receives on one connection. On another, as the QP's next one, none receives for the same CQ meanwhile.
func TestOneLeads(t *testing.T) {
	a, b := sockets(t)
	first, next, cq := tcp.New(a), tcp.New(b), new(CQ)
	want := func(c *tcp.Conn, want bool, why string) {
		t.Helper()
		if cq.sleep(c) != want {
			t.Errorf("%s: receives: %t", why, !want)
		}
	}
	want(first, true, "the first")
	want(next, false, "another while that receives")
	want(first, true, "the first goes on")
	cq.awake()
	want(next, true, "another after it")
}
