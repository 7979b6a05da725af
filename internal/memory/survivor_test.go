package memory

import (
	"sync"
	"sync/atomic"
	"testing"
)

// An invalidation that has found what an STag stood for, and comes after that was replaced, does not end what took its
// place.
func TestLateInvalidation(t *testing.T) {
	table := NewTable()
	m, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	w, r, d := window(t, table, false), allocate(t, table, Most{1, 8}), local(table)
	b, g := Binding{Region: m, Length: 8, Access: RemoteWrite},
		Registration{Memory: [][]byte{make([]byte, 8)}, Access: RemoteWrite}
	for name, tt := range map[string]struct {
		target Target
		tag    *tag
		begin  func() Fault
		want   Fault
	}{
		"window": {w, &w.tag, func() Fault { return d.Bind(w, b) }, Invalidated},
		"region": {r, &r.tag, func() Fault { return d.FastRegister(r, &g) }, InvalidSTag},
	} {
		if f := tt.begin(); f != None {
			t.Fatal(f)
		}
		found := tt.tag.hold()
		d.LocalInvalidate(tt.target)
		if f := tt.begin(); f != None {
			t.Fatal(f)
		}
		if f := tt.target.invalidate(found); f != tt.want || !tt.tag.Valid() {
			t.Errorf("%s: %v, valid: %t", name, f, tt.tag.Valid())
		}
		found.release()
		if f := tt.target.invalidate(tt.tag.cur.Load()); f != None || tt.tag.Valid() {
			t.Errorf("%s: %v, valid: %t", name, f, tt.tag.Valid())
		}
	}
}

// Of several streams that register in one region at the same time, one does.
func TestFastRegisterOnce(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{1, 8}), local(table)
	for range 3000 {
		var done atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if d.FastRegister(r, &Registration{Memory: [][]byte{make([]byte, 8)}}) == None {
					done.Add(1)
				}
			})
		}
		wg.Wait()
		if n := done.Load(); n != 1 {
			t.Fatalf("%d registrations", n)
		}
		d.LocalInvalidate(r)
	}
}
