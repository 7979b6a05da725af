package iwarp

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// deaf returns the Initiator of a TCP connection, and what its peer has of that, who reads nothing more after the startup.
func deaf(t *testing.T) (*QP, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if req, err := Respond(t.Context(), c, nil, ListenConfig{}); err == nil {
			if reply, err := req.m.Accept(time.Now(), mpa.Answer{}); err == nil && req.exchange(t.Context(), reply) == nil {
				accepted <- c
			}
		}
	}()
	qp, err := Dial(testrig.Within(t), "tcp", ln.Addr().String())
	testrig.Must(t, err)
	t.Cleanup(func() { _ = qp.Abort() })
	peer := <-accepted
	if peer == nil {
		t.Fatal("the startup has failed")
	}
	t.Cleanup(func() { _ = peer.Close() })
	testrig.Must(t, peer.(*net.TCPConn).SetReadBuffer(16<<10))
	return qp, peer
}

// awaitTCP waits for what TCP says of the QP's octets, and asks it past the QP.
func (qp *QP) awaitTCP(t *testing.T, there func(unsent bool) bool) {
	t.Helper()
	for ctx := testrig.Within(t); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		qp.mu.Lock()
		p, _ := qp.conn.Path()
		ok := there(p.Unsent)
		qp.mu.Unlock()
		if ok {
			return
		}
	}
	t.Fatal("TCP does not come to that")
}

// TestUnsent: what TCP could not send yet holds a FIN back, however often it is asked for, and no longer than that.
func TestUnsent(t *testing.T) {
	qp, peer := deaf(t)
	if _, ok := qp.conn.Path(); !ok {
		t.Skip("the system does not tell")
	}
	unsent := func(want bool) {
		t.Helper()
		qp.mu.Lock()
		defer qp.mu.Unlock()
		if got := qp.unsent(); got != want {
			t.Errorf("unsent: %t", got)
		}
	}
	mr, err := qp.PD().Register(make([]byte, 8<<20), 0)
	testrig.Must(t, err)
	testrig.Must(t, qp.PostSend(&SendWR{Op: OpSend, SGL: []SGE{mr.Slice(0, mr.Len())}}))
	qp.awaitTCP(t, func(unsent bool) bool { return unsent && qp.eng.StreamSent() > 256<<10 }) // more than the peer's TCP takes
	unsent(true)
	unsent(true)
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	qp.awaitTCP(t, func(unsent bool) bool { return !unsent && !qp.writing && !qp.eng.Pending() })
	unsent(false)
	unsent(false)
}
