package driver

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestCloseAnswersReadsBusy has both ends close at once when one has posted Reads, alone or after Sends, all of which
// are in the other's system, where the goroutine that receives has yet to run, as on a busy machine: all of them are
// answered before the FIN.
//
// Proves D30.
func TestCloseAnswersReadsBusy(t *testing.T) {
	for _, sends := range []int{0, 4} {
		for range 5 {
			t.Run(strconv.Itoa(sends), func(t *testing.T) { closesWithReads(t, sends) })
		}
	}
}

func closesWithReads(t *testing.T, sends int) {
	const reads, size = 8, 16 << 10 // which the socket's buffer has room for
	a, b := sockets(t)
	release := withhold(t, a)
	defer release() // before the ends close, if the test fails
	server, client := busy(t, a), busy(t, b)
	away := server.region(make([]byte, size), memory.LocalWrite|memory.RemoteRead)
	mem := client.region(make([]byte, size), memory.LocalWrite)
	for range sends {
		testrig.Must(t, server.PostReceive(&engine.RecvWork{SGL: listOf(away, size)}))
		client.post(engine.SendWork{Op: engine.OpSend, SGL: listOf(mem, size)})
	}
	for range reads {
		client.post(engine.SendWork{Op: engine.OpRead, SGL: listOf(mem, 4096), RemoteSTag: away.STag()})
	}
	client.awaitArrival()
	if n := server.Figures().Stats.RecvStream; n > 0 {
		t.Fatalf("%d bytes were received", n)
	}
	for _, e := range []*end{server, client} {
		e.BeginClose()
	}
	go server.PollFIN()
	client.PollFIN()
	for i, c := range client.awaitCompletions(sends + reads) {
		if c.Status != engine.StatusSuccess {
			t.Errorf("request %d, %v: %v", i, c.Op, c.Status)
		}
	}
	release()
	for _, e := range []*end{server, client} {
		if end := e.awaitEnd(); end.State != engine.Idle {
			t.Errorf("ended in %v with %v", end.State, end.Cause)
		}
	}
}

// busy returns an end on a socket, whose close may take as long as a test.
func busy(t *testing.T, c net.Conn) *end {
	t.Helper()
	s := newSetup(mpa.RoleInitiator)
	s.machine.CloseTimeout, s.machine.CloseLimit = testrig.Soon, -1
	e := s.on(t, c)
	if _, ok := e.tcp.Path(); !ok {
		t.Skip("the system does not tell what TCP has sent")
	}
	return e
}

// awaitArrival waits until all that was posted is in the peer's system.
func (e *end) awaitArrival() {
	e.Helper()
	for ctx := testrig.Within(e); ; time.Sleep(time.Millisecond) {
		testrig.Must(e, ctx.Err())
		e.Conn.mu.Lock()
		given := !e.sender.writing && !e.machine.Pending()
		e.Conn.mu.Unlock()
		if given && e.owed() == 0 {
			return
		}
	}
}
