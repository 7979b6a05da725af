package iwarp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestPollerHushes: what arrives wakes nobody while a consumer polls, unless somebody waits: for a notice, in one of the one-call forms, or for a CQ. Who begins to
// wait ends it.
func TestPollerHushes(t *testing.T) {
	qp, socket := leadable(t)
	qp.eng = new(engine.QP)
	wakesFrom := func() (octets int) {
		t.Helper()
		raw, err := socket.SyscallConn()
		testrig.Must(t, err)
		testrig.Must(t, raw.Control(func(fd uintptr) { octets, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT) }))
		testrig.Must(t, err)
		return octets
	}
	poll := func() {
		var wc [1]WC
		for range 600 {
			qp.recvCQ.Poll(wc[:])
		}
	}
	hushed := func() { // there is a timer, too, for a poller that rests
		t.Helper()
		for ctx := testrig.Within(t); wakesFrom() == 1; poll() {
			testrig.Must(t, ctx.Err())
		}
	}
	for name, c := range map[string]struct{ waits, ends func() }{
		"notice":   {func() { qp.recvCQ.Arm(false) }, func() { qp.recvCQ.Disarm(true) }},
		"call":     {func() { qp.callers.Add(1); qp.lookOut() }, func() { qp.callers.Add(-1) }},
		"a waiter": {func() { qp.recvCQ.waiters++; qp.recvCQ.lookOut() }, func() { qp.recvCQ.waiters-- }},
		"leader":   {func() { qp.leadFor(t.Context(), new(nap)) }, nil},
	} {
		hushed()
		if c.waits(); wakesFrom() != 1 {
			t.Errorf("%s: what arrives does not wake who waits", name)
		}
		if c.ends == nil {
			continue
		}
		if poll(); wakesFrom() != 1 {
			t.Errorf("%s: hushed with one who waits", name)
		}
		c.ends()
	}
}
