package memory

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A window of the first type that is bound anew under the same STag is there for its peers at every moment: also while
// the bind waits for a copy under the earlier binding.
func TestRebindIsAtomic(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	w, d := window(t, table, true), local(table)
	b := Binding{Region: r, Length: 8, Access: RemoteWrite | RemoteRead, Key: 3}
	d.Bind(w, b)
	before := w.cur.Load()
	r.first.locks.rlock(0, 8) // a copy
	done := make(chan Fault)
	go func() { done <- d.Bind(w, b) }()
	for w.cur.Load() == before {
		runtime.Gosched()
	}
	if f := d.CheckWrite(w.STag(), 0, 8); f != None {
		t.Errorf("while the bind waits: %v", f)
	}
	r.first.locks.runlock(0, 8)
	if f := <-done; f != None || before.usable() || r.windows != 1 {
		t.Errorf("%v; the earlier binding: %t; %d windows", f, before.usable(), r.windows)
	}
}

// Peers that name a window all the time, while it is bound under the same key again and again, never fail.
func TestRebindFlood(t *testing.T) {
	for name, access := range map[string]func(d Domain, stag uint32) Fault{
		"Write":              func(d Domain, stag uint32) Fault { return d.Place(stag, 8, data) },
		"Read":               func(d Domain, stag uint32) Fault { return d.Load(into(make([]byte, 8)), 8, stag, 0) },
		"check of a Write":   func(d Domain, stag uint32) Fault { return d.CheckWrite(stag, 0, 8) },
		"check of an Atomic": func(d Domain, stag uint32) Fault { return d.CheckAtomic(stag, 0) },
		"Atomic Operation": func(d Domain, stag uint32) Fault {
			_, f := d.Atomic(stag, 0, func(old uint64) uint64 { return old + 1 })
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := NewTable()
			r, err := table.Register(make([]byte, 32), Options{Access: LocalWrite, PD: pd})
			if err != nil {
				t.Fatal(err)
			}
			w, d := window(t, table, true), local(table)
			b := Binding{Region: r, Length: 16, Access: RemoteWrite | RemoteRead | RemoteAtomic, Key: 3}
			d.Bind(w, b)
			stag := w.STag()
			var over atomic.Bool
			done := make(chan int)
			go func() {
				n := 0
				for ; !over.Load(); n++ {
					if f := d.Bind(w, b); f != None {
						t.Error(f)
					}
				}
				done <- n
			}()
			for range 20000 {
				if f := access(d, stag); f != None {
					t.Errorf("%v", f)
					break
				}
			}
			over.Store(true)
			t.Log(<-done, "binds")
		})
	}
}

// An access that has found a binding, and that another took its place before it had the lock, is judged by that: but
// only if its STag is still good.
func TestReplaced(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	d := local(table)
	b := Binding{Region: r, Length: 8, Access: RemoteWrite, Key: 3}
	for name, tt := range map[string]struct {
		change func(w *Window)
		want   bool
	}{
		"nothing":    {func(*Window) {}, false},
		"bound anew": {func(w *Window) { d.Bind(w, b) }, true},
		"another key": {func(w *Window) { d.Bind(w, Binding{Region: r, Length: 8, Access: RemoteWrite, Key: 4}) },
			false},
		"freed": {func(w *Window) { table.Free(w) }, false},
	} {
		w := window(t, table, true)
		if f := d.Bind(w, b); f != None {
			t.Fatal(f)
		}
		g := w.hold()
		tt.change(w)
		if got := d.replaced(g, g.stag, g.check(d, 0, 1, RemoteWrite)); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
		g.release()
	}
	w := window(t, table, true)
	d.Bind(w, b)
	d.Bind(w, Binding{Key: 3})
	if f := d.Place(w.STag(), 0, data); f != Invalidated {
		t.Errorf("bound to nothing: %v", f)
	}
}
