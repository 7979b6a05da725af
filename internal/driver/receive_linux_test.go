package driver

import (
	"io"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestRenewedToTheEnd: the goroutine that goes on after an idle time receives all that comes, to the acknowledgement of
// our FIN.
func TestRenewedToTheEnd(t *testing.T) {
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(4<<10)) // so that TCP does not acknowledge all before the peer reads
	s := newSetup(mpa.RoleInitiator)
	s.machine.CloseTimeout, s.machine.CloseLimit = time.Hour, -1
	e := s.on(t, a)
	if e.Reclaim() {
		t.Error("there is memory to give back before the first message")
	}
	const size = 64 << 10
	e.post(engine.SendWork{Op: engine.OpWrite, Unsignaled: true, SGL: listOf(e.region(make([]byte, size), 0), size)})
	testrig.Must(t, b.CloseWrite())
	e.await("our FIN", func() bool {
		e.Conn.mu.Lock()
		defer e.Conn.mu.Unlock()
		return e.machine.AwaitsFINAck()
	})
	if e.Reclaim(); e.ended() != nil {
		t.Fatal("it has ended before the peer has everything")
	}
	testrig.Must(t, b.SetReadBuffer(1<<20))
	_, err := io.Copy(io.Discard, b)
	testrig.Must(t, err)
	if end := e.awaitEnd(); end.State != engine.Idle {
		t.Errorf("%v: %v", end.State, end.Cause)
	}
}
