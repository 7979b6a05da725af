package iwarp

import "testing"

// A poster sends its own work, and of what others have posted no more than its share: then
// the sending goroutine goes on with it. Its own work is not cut short.
func TestPosterShare(t *testing.T) {
	qp := loopback(t)
	const n = 64 << 10
	mr, err := qp.pd.Register(make([]byte, n), 0)
	if err != nil {
		t.Fatal(err)
	}
	wr := &SendWR{Op: OpWrite, SGL: []SGE{mr.Slice(0, n)}, Unsignaled: true} // the peer refuses it, in time
	qp.mu.Lock()
	defer qp.mu.Unlock()
	for range 2 {
		if err := qp.queueSend(wr, nil); err != nil {
			t.Fatal(err)
		}
	}
	own := qp.eng.Posted()
	for range 60 { // others post while the poster is at it
		if err := qp.queueSend(wr, nil); err != nil {
			t.Fatal(err)
		}
	}
	if writes := qp.pushOwnUnlocking(qp.now(), own); writes < 1 || writes > 3+maxShare {
		t.Errorf("%d gathered writes for 2 requests of its own", writes)
	}
}
