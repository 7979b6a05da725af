package driver

import (
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A nap is what a consumer waits for that does not come: someone interrupts it at once, and then there is nothing to
// wait for any more.
type nap struct {
	interrupted bool
	on          *Conn
	woke, early bool // Awake was called, and while nobody else could have the role
}

func (n *nap) Sleep(c *Conn) (sleeps bool) {
	n.on = c
	sleeps, n.interrupted = n.interrupted, false
	if sleeps {
		c.Announce()
		c.Interrupt()
	}
	return sleeps
}

func (n *nap) Awake() { n.woke, n.early = true, !n.on.tcp.AcquireRole() }

// leadable returns a connection whose receiving goroutine stands back, and its socket.
func leadable(t *testing.T) (*end, *net.TCPConn) {
	t.Helper()
	a, _ := sockets(t)
	e, m := newSetup(mpa.RoleInitiator).prepared(t, a)
	e.machine = m
	if !e.tcp.CanYieldRole() {
		t.Skip("the receiving goroutine always reads here")
	}
	over := make(chan struct{})
	go func() { e.tcp.YieldRole(); close(over) }()
	t.Cleanup(func() { _ = e.tcp.Close(); <-over })
	e.await("the role", e.tcp.AcquireRole)
	e.tcp.ReleaseRole(false, false)
	return e, a
}

// TestInterruptedWithholds: a consumer that was interrupted, as the completions that it waits for do not come by the
// connection, leaves the role to the receiving goroutine alone; one that was not leaves it to the next consumer. Before
// that it hears that it waits no more.
func TestInterruptedWithholds(t *testing.T) {
	e, _ := leadable(t)
	for _, interrupted := range []bool{false, true} {
		n := nap{interrupted: interrupted}
		if e.ReceiveFor(t.Context(), &n); n.interrupted {
			t.Fatal("the consumer did not have the role")
		}
		if !n.woke || !n.early {
			t.Errorf("interrupted: %t, told that it waits no more: %t, before the next has the role: %t",
				interrupted, n.woke, n.early)
		}
		taken := e.tcp.AcquireRole()
		if taken == interrupted {
			t.Errorf("interrupted: %t, and the next consumer has the role: %t", interrupted, taken)
		}
		if taken {
			e.tcp.ReleaseRole(false, false)
		}
	}
}

// TestWholeHasNoRole: over a stream of whole segments the receiving goroutine always receives, and a consumer that
// polls only sends.
func TestWholeHasNoRole(t *testing.T) {
	e := newSetup(mpa.RoleInitiator).over(t, newSegments())
	e.ReceiveFor(testrig.Within(t), &nap{interrupted: true})
	e.RearmReads()
	if e.Poll() {
		t.Error("Poll has done something")
	}
}
