package memory

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// TestSucceed: what takes the place of a region has its STag, with memory, rights and Protection Domain of its own, and
// the old memory is reached by nobody.
//
// Proves Z13, Z14.
func TestSucceed(t *testing.T) {
	table := NewTable()
	old, before := register(t, table, Options{Access: RemoteWrite, PD: pd})
	d := local(table)
	memory := make([]byte, 4)
	r, f, err := table.Succeed(old, memory, Options{Access: RemoteWrite | RemoteRead, PD: pd, Base: 100})
	if f != None || err != nil {
		t.Fatal(f, err)
	}
	if r.STag() != old.STag() || !r.Valid() || old.Valid() || table.tags.Len() != 1 {
		t.Errorf("%#x after %#x, valid %t and %t, %d in the table",
			r.STag(), old.STag(), r.Valid(), old.Valid(), table.tags.Len())
	}
	if f := d.Place(old.STag(), 101, layout.Plain([]byte("new"))); f != None || string(memory) != "\x00new" {
		t.Errorf("%v: %q", f, memory)
	}
	if f := d.LocalPlace(old, new(Term), 0, data); f != InvalidSTag || !bytes.Equal(before, numbered(64)) {
		t.Errorf("a request that names the old one: %v", f)
	}
	if f := table.Revoke(old); f != InvalidSTag {
		t.Errorf("the old one is revoked: %v", f)
	}
	other, f, err := table.Succeed(r, memory, Options{PD: pd + 1})
	if f != None || err != nil {
		t.Fatal(f, err)
	}
	if f := d.CheckWrite(other.STag(), 0, 1); f != OtherDomain {
		t.Errorf("in another domain: %v", f)
	}
	if f := table.Revoke(other); f != None || table.tags.Len() != 0 {
		t.Error(f)
	}
	if f := d.CheckWrite(old.STag(), 100, 1); f != InvalidSTag {
		t.Errorf("after the end of all: %v", f)
	}
}

// TestSucceedRefused leaves a region as it is that cannot be succeeded.
func TestSucceedRefused(t *testing.T) {
	table := NewTable()
	old, _ := register(t, table, Options{Access: RemoteWrite, PD: pd})
	d, w := local(table), window(t, table, true)
	if _, _, err := table.Succeed(old, make([]byte, 2), Options{Base: ^uint64(0)}); err != ErrWrap || !old.Valid() {
		t.Error(err)
	}
	d.Bind(w, Binding{Region: old, Length: 8, Access: RemoteWrite})
	if _, f, err := table.Succeed(old, nil, Options{}); f != HasWindows || err != nil ||
		d.CheckWrite(old.STag(), 0, 1) != None {
		t.Errorf("with a window: %v, %v", f, err)
	}
	table.Free(w)
	table.Revoke(old)
	if r, f, err := table.Succeed(old, nil, Options{}); r != nil || f != InvalidSTag ||
		err != nil || table.tags.Len() != 0 {
		t.Errorf("of one that is gone: %v, %v", f, err)
	}
}

// TestSucceedFlood: peers that name the STag all the time, while one region after the other takes it over, never fail.
func TestSucceedFlood(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: RemoteWrite, PD: pd})
	d, stag := local(table), r.STag()
	var over atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !over.Load(); n++ {
			next, f, err := table.Succeed(r, make([]byte, 32), Options{Access: RemoteWrite, PD: pd})
			if f != None || err != nil {
				t.Error(f, err)
				break
			}
			r = next
		}
		done <- n
	}()
	for range 20000 {
		if f := d.Place(stag, 8, data); f != None {
			t.Error(f)
			break
		}
	}
	over.Store(true)
	t.Log(<-done, "regions")
}

// TestSucceedInvalidated: an invalidation that has found the region which another then succeeds is judged by that one.
func TestSucceedInvalidated(t *testing.T) {
	table := NewTable()
	o := Options{Access: RemoteWrite | RemoteInvalidate, PD: pd}
	old, _ := register(t, table, o)
	d := local(table)
	g := table.lookup(old.STag())
	r, f, err := table.Succeed(old, make([]byte, 4), o)
	if f != None || err != nil {
		t.Fatal(f, err)
	}
	if f := d.invalidate(g); f != InvalidSTag || !d.replaced(g, old.STag(), f) {
		t.Errorf("by what it found: %v", f)
	}
	if f := d.Invalidate(old.STag()); f != None || r.Valid() {
		t.Errorf("again: %v", f)
	}
}
