package iwarp

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestReleasedOnce: who closes or aborts a QP that another goroutine is just releasing returns when that is over. Its
// Done is closed then, and its Protection Domain free.
func TestReleasedOnce(t *testing.T) {
	for name, end := range map[string]func(*QP) error{"Close": (*QP).Close, "Abort": (*QP).Abort} {
		rnic := NewRNIC(RNICConfig{})
		pd, err := rnic.AllocPD()
		must(t, err)
		qp, err := pd.CreateQP(QPConfig{})
		must(t, err)
		var mayEnd atomic.Bool
		first, second := make(chan error), make(chan error)
		rnic.ledger.mu.Lock() // which the release waits for
		go func() { first <- qp.Close() }()
		<-qp.Done()
		go func() {
			err := end(qp)
			if !mayEnd.Load() {
				t.Errorf("%s returns before the QP is released", name)
			}
			second <- err
		}()
		time.Sleep(time.Millisecond) // for who does not wait for the release
		mayEnd.Store(true)
		rnic.ledger.mu.Unlock()
		must(t, <-second)
		must(t, pd.Close())
		must(t, <-first)
	}
}
