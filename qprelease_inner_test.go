package iwarp

import (
	"errors"
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

// TestFastMRsOfReleased: when a QP is released, no MR is made for its transfers any more. One that was taken before
// goes back to those that are idle, for which others may wait.
func TestFastMRsOfReleased(t *testing.T) {
	rnic := NewRNIC(RNICConfig{})
	pd, err := rnic.AllocPD()
	must(t, err)
	used, err := pd.CreateQP(QPConfig{})
	must(t, err)
	unused, err := pd.CreateQP(QPConfig{})
	must(t, err)
	mrs := fastMRsOf(used)
	mr, err := mrs.take()
	must(t, err)
	must(t, used.Close())
	must(t, unused.Close())
	for range 2 {
		if err := mrs.register(mr, make([]byte, 8)); !errors.Is(err, errReleased) {
			t.Errorf("registered in an MR that has ended: %v", err)
		}
		if len(mrs.idle) != 1 || <-mrs.idle != mr {
			t.Fatal("the MR is not idle")
		}
	}
	for _, mrs := range []*fastMRs{mrs, fastMRsOf(unused)} {
		if mr, err := mrs.take(); mr != nil || !errors.Is(err, errReleased) {
			t.Errorf("got %v, %v", mr, err)
		}
	}
	if n := rnic.Stats().MRs; n != 0 {
		t.Errorf("%d MRs are left", n)
	}
}
