package iwarp

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSRQRefusal: a QP is told that it holds its share, where there is one, and otherwise that the queue is empty.
func TestSRQRefusal(t *testing.T) {
	for _, c := range []struct {
		perQP, held int
		share       bool
	}{{0, 0, false}, {0, 3, false}, {2, 1, false}, {2, 2, true}} {
		s := srqSource{&SRQ{perQP: c.perQP}, &QP{}}
		for range c.held {
			s.qp.srqHeld.countTaken()
		}
		if got := s.Refusal(); strings.Contains(got, "its share") != c.share ||
			strings.Contains(got, "is empty") == c.share {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestSRQForgetsQP: a queue keeps nothing of a QP that is gone, and a Protection Domain nothing of a queue that could
// not be created.
func TestSRQForgetsQP(t *testing.T) {
	rnic := NewRNIC(RNICConfig{Limits: Limits{SRQs: 1}})
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	srq, err := pd.CreateSRQ(SRQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	qp := &QP{pd: pd}
	if err := srq.attach(qp); err != nil {
		t.Fatal(err)
	}
	srq.taken[qp] = 1
	if srq.detach(qp); len(srq.taken) > 0 || srq.users != 0 {
		t.Errorf("%d QPs are kept, %d use it", len(srq.taken), srq.users)
	}
	if _, err := pd.CreateSRQ(SRQConfig{}); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("one queue more than the limit: %v", err)
	}
	for _, end := range []func() error{srq.Close, pd.Close, rnic.Close} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestSRQRoomAtTheEnd: who polls a completion posts another receive, and there is room for it also while the connection
// ends, which gives all places back at once.
func TestSRQRoomAtTheEnd(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	const depth = 8
	srq, err := pd.CreateSRQ(SRQConfig{Depth: depth})
	if err != nil {
		t.Fatal(err)
	}
	qp := &QP{pd: pd, cfg: QPConfig{SRQ: srq}}
	for range depth {
		if err := srq.PostRecv(&RecvWR{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20_000 {
		qp.srqHeld.next()
		for range depth {
			srq.takeRecv(qp, &engine.RecvWork{})
		}
		var ended sync.WaitGroup
		ended.Go(func() { srq.returnSlots(qp) })
		for qp.srqHeld.count() > 0 {
			runtime.Gosched()
		}
		for i := range depth {
			qp.polled([]WC{{Op: OpRecv, QP: qp, connection: qp.srqHeld.connection()}})
			if err := srq.PostRecv(&RecvWR{}); err != nil {
				t.Fatalf("after completion %d: %v", i, err)
			}
		}
		ended.Wait()
		if out := srq.out.Load(); out != 0 {
			t.Fatalf("%d receives are taken", out)
		}
	}
}

// TestServeWhileConnecting: a message may wait for a receive of the queue before the QP has its connection, and the
// receive finds it all the same.
func TestServeWhileConnecting(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	srq, err := pd.CreateSRQ(SRQConfig{})
	must(t, err)
	rnr := RNRPolicy{Bytes: 1 << 20, Messages: 8}
	qp, peer := connectedByPipe(t, pd, QPConfig{SRQ: srq, RNR: rnr}, QPConfig{})
	must(t, peer.PostSend(&SendWR{}))
	waiting := func() bool {
		srq.mu.Lock()
		defer srq.mu.Unlock()
		return len(srq.waiting) > 0
	}
	for !waiting() {
		runtime.Gosched()
	}
	posted := make(chan error)
	qp.mu.Lock()
	c := qp.conn.Swap(nil)
	go func() { posted <- srq.PostRecv(&RecvWR{}) }()
	for waiting() {
		runtime.Gosched()
	}
	time.Sleep(time.Millisecond) // for who does not wait for the connection
	qp.conn.Store(c)
	qp.mu.Unlock()
	must(t, <-posted)
	if wc, err := qp.RecvCQ().Next(testrig.Within(t)); err != nil || wc.Status != StatusSuccess {
		t.Errorf("%v, %v", wc.Status, err)
	}
}

// TestCloseWriteWhileConnecting: what a connection has brought may be known before the QP has it, and our half of it
// can be closed then.
func TestCloseWriteWhileConnecting(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	qp, _ := connectedByPipe(t, pd, QPConfig{}, QPConfig{})
	closed := make(chan error)
	qp.mu.Lock()
	c := qp.conn.Swap(nil)
	go func() { closed <- qp.CloseWrite() }()
	time.Sleep(time.Millisecond) // for who does not wait for the connection
	qp.conn.Store(c)
	qp.mu.Unlock()
	if err := <-closed; !errors.Is(err, errors.ErrUnsupported) { // as a pipe has no halves
		t.Error(err)
	}
}

// connectedByPipe returns two QPs with a connection.
func connectedByPipe(t *testing.T, pd *PD, a, b QPConfig) (x, y *QP) {
	t.Helper()
	near, far := net.Pipe()
	for i, c := range []net.Conn{near, far} {
		qp, err := pd.CreateQP([]QPConfig{a, b}[i])
		must(t, err)
		t.Cleanup(func() { _ = qp.Abort() })
		n := mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true}
		must(t, qp.ModifyRTS(c, n, nil))
		x, y = y, qp
	}
	return x, y
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
