package iwarp

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestReceiveAcrossConnections: a receive that is given back while the QP is made ready for another connection is
// posted for that, though it was not free when the others were posted.
func TestReceiveAcrossConnections(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	qp, err := pd.CreateQP(QPConfig{Receives: Receives{Count: 1, Size: 8}})
	must(t, err)
	t.Cleanup(func() { _ = qp.Abort() })
	connectAlone(t, qp)
	must(t, qp.Modify(StateError))
	<-qp.Done()
	in, posted := qp.inbox, make(chan struct{})
	var wc [1]WC
	if n := qp.recvCQ.Poll(wc[:]); n != 1 {
		t.Fatalf("%d receives were given back", n)
	}
	in.mu.Lock()
	go func() { in.post(wc[0].ID); close(posted) }()
	time.Sleep(time.Millisecond) // for it to learn that the connection has ended
	qp.mu.Lock()
	qp.reset()
	qp.mu.Unlock()
	in.begun.Add(1)
	in.mu.Unlock()
	<-posted
	if n := qp.Query().Receives; n != 1 {
		t.Errorf("%d receives are posted, want 1", n)
	}
}

// TestNoOvertaking: a request waits for those that wait for room already, also where there is room by now.
func TestNoOvertaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := NewRNIC(RNICConfig{}).AllocPD()
		must(t, err)
		qp, err := pd.CreateQP(QPConfig{})
		must(t, err)
		first := newCall(qp, SGE{})
		qp.room.join(first)
		posted := make(chan error, 1)
		go func() {
			_, err := qp.Submit(t.Context(), &SendWR{})
			posted <- err
		}()
		synctest.Wait()
		if n := qp.Query().Sends; n != 0 {
			t.Error("it was posted before the first")
		}
		qp.room.leave(first)
		must(t, <-posted)
		must(t, qp.Close())
	})
}

// TestRiskyRecvBehindLast: a receive whose message is on its way to the CQ is none for the next.
func TestRiskyRecvBehindLast(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	x, y := connectedByPipe(t, pd, QPConfig{}, QPConfig{})
	must(t, y.PostRecv(&RecvWR{}))
	must(t, riskyRecv(y))
	y.recvCQ.mu.Lock() // for which the completion waits
	must(t, x.PostSend(&SendWR{}))
	c := y.conn.Load()
	for ctx := testrig.Within(t); c.Figures().ArrivingRecvs == 0; runtime.Gosched() {
		must(t, ctx.Err())
	}
	err = riskyRecv(y)
	y.recvCQ.mu.Unlock()
	if !errors.Is(err, ErrRiskyRecv) {
		t.Errorf("one receive, and it is in use: %v", err)
	}
}
