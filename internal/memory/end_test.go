package memory

import (
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A region's end, of each kind, waits for an access that is under way in any part of
// it, the last one too: nothing is read or written any more when it has returned.
func TestEndWaitsForEveryPart(t *testing.T) {
	const size = 3 << minStripeShift
	for name, end := range map[string]func(Domain, *Region){
		"Revoke":          func(d Domain, r *Region) { d.Table.Revoke(r) },
		"Invalidate":      func(d Domain, r *Region) { d.Invalidate(r.STag()) },
		"LocalInvalidate": func(d Domain, r *Region) { d.LocalInvalidate(r) },
	} {
		for part := range 3 {
			table := NewTable()
			r, err := table.Register(make([]byte, size), Options{PD: pd, Stream: stream, Access: allRemote})
			testrig.Must(t, err)
			at := part << minStripeShift
			r.first.locks.rlock(at, 1) // an access
			done := make(chan struct{})
			go func() {
				defer close(done)
				end(local(table), r)
			}()
			for waits := false; !waits; runtime.Gosched() {
				select {
				case <-done:
					t.Fatalf("%s returned while part %d was read", name, part)
				default:
				}
				if waits = !r.first.locks.mu[part].TryRLock(); !waits {
					r.first.locks.mu[part].RUnlock()
				}
			}
			r.first.locks.runlock(at, 1)
			<-done
			if r.Valid() {
				t.Errorf("%s: still valid", name)
			}
		}
	}
}

// Judging an access does not wait for a copy: a request can be posted, and a peer's Read
// accepted, while other bytes of the region are placed.
func TestChecksDoNotWait(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	r.first.locks.lock(0, 32) // a copy
	defer r.first.locks.unlock(0, 32)
	d := local(table)
	if f := d.LocalCheck(r, new(Term), 0, 32, true); f != None {
		t.Error(f)
	}
	if f := d.CheckRead(r.STag(), base, 32); f != None {
		t.Error(f)
	}
	if !r.Valid() {
		t.Error("not valid")
	}
}

// What has ended while a Run waited for its locks is judged when it has them: the Run does not begin.
//
// Proves Z11: memory that was invalidated, or revoked, is not reached any more.
func TestEndBeforeARun(t *testing.T) {
	for name, begin := range begins {
		for what, end := range map[string]uint32{"invalidated": invalidated, "revoked": revoked} {
			table := NewTable()
			r, _ := large(t, table)
			r.first.locks.rlock(0, 1) // an access, for which the Run waits
			began := make(chan bool)
			go func() {
				var run Run
				ok := begin(local(table), &run, r, 0, 1)
				run.End()
				began <- ok
			}()
			for waits := false; !waits; runtime.Gosched() {
				select {
				case ok := <-began:
					t.Fatalf("%s: a Run has not waited, and begins: %t", name, ok)
				default:
				}
				if waits = !r.first.locks.mu[0].TryRLock(); !waits {
					r.first.locks.mu[0].RUnlock()
				}
			}
			r.first.state.Store(end)
			r.first.locks.runlock(0, 1)
			if <-began {
				t.Errorf("%s: a Run begins in what was %s meanwhile", name, what)
			}
		}
	}
}
