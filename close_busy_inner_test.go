package iwarp

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestCloseAnswersReadsBusy has both ends close at once when one has posted Reads, alone or after Sends, all of which are in the
// other's system, where the goroutine that receives has yet to run, as on a busy machine: all of them are answered before the FIN.
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
	server, client := busy(t, a), busy(t, b)
	away, err := server.PD().Register(make([]byte, size), LocalWrite|RemoteRead)
	testrig.Must(t, err)
	mem, err := client.PD().Register(make([]byte, size), LocalWrite)
	testrig.Must(t, err)
	for range sends {
		testrig.Must(t, server.PostRecv(&RecvWR{SGL: []SGE{away.Slice(0, size)}}))
		testrig.Must(t, client.PostSend(&SendWR{Op: OpSend, SGL: []SGE{mem.Slice(0, size)}}))
	}
	for range reads {
		testrig.Must(t, client.PostSend(&SendWR{Op: OpRead, SGL: []SGE{mem.Slice(0, 4096)}, Remote: away.Remote(0)}))
	}
	client.awaitArrival(t)
	if n := server.Stats().ReceivedStream; n > 0 {
		t.Fatalf("%d octets were received", n)
	}
	var closes sync.WaitGroup
	closes.Go(func() { testrig.Should(t, server.Close()) })
	closes.Go(func() { testrig.Should(t, client.Close()) })
	for range sends + reads {
		if wc, err := client.SendCQ().Next(testrig.Within(t)); err != nil || wc.Err() != nil {
			t.Errorf("%v: %v, %v", wc.Op, err, wc.Err())
		}
	}
	release()
	closes.Wait()
}

// withhold keeps the goroutine that will receive from a socket waiting, until release is called.
func withhold(t *testing.T, c *net.TCPConn) (release func()) {
	t.Helper()
	others, err := c.SyscallConn()
	testrig.Must(t, err)
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = others.Read(func(uintptr) bool { close(begun); <-done; return true }) // one goroutine at a time waits to read
	}()
	<-begun
	release = sync.OnceFunc(func() { close(done) })
	t.Cleanup(release)
	return release
}

// busy returns a QP on a socket, whose close may take as long as a test.
func busy(t *testing.T, c net.Conn) *QP {
	t.Helper()
	rnic := NewRNIC(RNICConfig{})
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	qp, err := pd.CreateQP(QPConfig{Nudge: -1, CloseTimeout: testrig.Soon, CloseLimit: -1})
	testrig.Must(t, err)
	testrig.Must(t, qp.ModifyRTS(c, mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true, IRD: 16, ORD: 16}, nil))
	if _, ok := qp.conn.Path(); !ok {
		t.Skip("the system does not tell what TCP has sent")
	}
	return qp
}

// awaitArrival waits until all that was posted is in the peer's system.
func (qp *QP) awaitArrival(t *testing.T) {
	t.Helper()
	for ctx := testrig.Within(t); ; time.Sleep(time.Millisecond) {
		testrig.Must(t, ctx.Err())
		qp.mu.Lock()
		given := !qp.writing && !qp.eng.Pending()
		owed, err := qp.conn.Owes()
		qp.mu.Unlock()
		testrig.Must(t, err)
		if given && owed == 0 {
			return
		}
	}
}
