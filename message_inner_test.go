package iwarp

import (
	"testing"
	"time"
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
