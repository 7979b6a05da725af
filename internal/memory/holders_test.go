package memory

import (
	"slices"
	"testing"
)

// Whatever is done with memory, and however it ends, nobody holds what an STag stood for afterwards: or else each bind
// and each registration would take memory.
func TestNobodyHolds(t *testing.T) {
	table := NewTable()
	buf := make([]byte, 16)
	r, d := allocate(t, table, Most{Pieces: 2, Bytes: 16}), local(table)
	m, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	w := window(t, table, false)
	all := LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
	add := func(old uint64) uint64 { return old + 1 }
	for name, access := range map[string]func(stag uint32, to uint64){
		"Write":            func(stag uint32, to uint64) { d.Place(stag, to, data) },
		"Read":             func(stag uint32, to uint64) { d.Load(into(make([]byte, 1)), 1, stag, to) },
		"Atomic Operation": func(stag uint32, to uint64) { d.Atomic(stag, to, add) },
		"checks": func(stag uint32, to uint64) {
			d.CheckWrite(stag, to, 1)
			d.CheckAtomic(stag, to)
		},
		"Run": func(stag uint32, to uint64) {
			var run Run
			d.BeginPlace(&run, stag, to, 1)
			run.End()
		},
		"the owner": func(_ uint32, to uint64) {
			var run Run
			term := r.Term()
			d.LocalCheck(r, &term, int(to), 1, true)
			d.LocalLoad(into(make([]byte, 1)), r, &term, int(to), 1)
			d.LocalPlace(r, &term, int(to), data)
			d.BeginLocalPlace(&run, r, &term, int(to), 1, 1, 0)
			run.End()
			d.CheckInvalidate(w)
		},
		"the program": func(_ uint32, to uint64) {
			r.ReadAt(make([]byte, 1), int(to))
			r.WriteAt(make([]byte, 1), int(to))
			r.Update(func([]byte) {})
			r.Detach()
		},
		"questions":            func(uint32, uint64) { w.Access(); w.Size(); w.Valid(); r.Access(); r.Size() },
		"another key":          func(stag uint32, to uint64) { d.CheckWrite(stag^1, to, 1) },
		"Send with Invalidate": func(stag uint32, _ uint64) { d.Invalidate(stag) },
	} {
		must := func(f Fault) {
			t.Helper()
			if f != None {
				t.Fatalf("%s: %v", name, f)
			}
		}
		must(d.FastRegister(r, &Registration{Memory: [][]byte{buf}, Access: all, Key: 1}))
		must(d.Bind(w, Binding{Region: m, Length: 8, Access: RemoteRead | RemoteWrite, Key: 1}))
		for range 2 { // the second time STags are invalid
			for _, tag := range []*tag{&w.tag, &r.tag} {
				for _, to := range []uint64{0, 1, 15, 99} {
					access(tag.STag(), to)
				}
				if !tag.cur.Load().idle() {
					t.Errorf("%s: somebody holds what was looked at", name)
				}
			}
			must(d.LocalInvalidate(w))
			must(d.LocalInvalidate(r))
		}
	}
}

// A bind that is refused leaves to the next what it would have become.
func TestRefusedBindTakesNothing(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	w, d := window(t, table, false), local(table)
	if n := testing.AllocsPerRun(10, func() {
		if f := d.Bind(w, Binding{Region: r, Offset: 1 << 20, Length: 1, Access: RemoteRead}); f != Bounds {
			t.Error(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A stream's end gives back the windows that are bound to it, whichever went before; those of another stay.
func TestWindowsOfAStream(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	d := local(table)
	other := d
	other.Stream++
	b := Binding{Region: r, Length: 1, Access: RemoteRead}
	for _, gone := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {2, 1}, {0, 1, 2}, {1, 0, 1}} {
		windows := []*Window{window(t, table, false), window(t, table, false), window(t, table, false)}
		kept := window(t, table, false)
		other.Bind(kept, b)
		for _, w := range windows {
			d.Bind(w, b)
		}
		for n, i := range gone {
			d.LocalInvalidate(windows[i])
			if slices.Contains(gone[n+1:], i) { // bound again in between
				d.Bind(windows[i], b)
			}
		}
		for i, w := range windows {
			if w.Valid() == slices.Contains(gone, i) {
				t.Errorf("without %v: window %d is valid: %t", gone, i, w.Valid())
			}
		}
		table.EndStream(d.Stream)
		for i, w := range windows {
			if w.Valid() {
				t.Errorf("without %v: window %d outlives its stream", gone, i)
			}
		}
		if !kept.Valid() || len(table.windows) != 1 {
			t.Errorf("without %v: the other stream's window is valid: %t; windows of %d streams",
				gone, kept.Valid(), len(table.windows))
		}
		table.Free(kept)
	}
}

// What is not registered any more is not kept from the garbage collector, neither as long as the STag is invalid nor by
// what is to become the next registration; and no room for many pieces is kept.
func TestInvalidHasNoMemory(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{Pieces: 99, Bytes: 99}), local(table)
	for _, pieces := range []int{1, 2, KeptPieces + 1, 99, 2, KeptPieces, 1} {
		list := make([][]byte, pieces)
		for i := range list {
			list[i] = make([]byte, 1)
		}
		if f := d.FastRegister(r, &Registration{Memory: list}); f != None {
			t.Fatal(f)
		}
		x := r.extent()
		if f := d.LocalInvalidate(r); f != None {
			t.Fatal(f)
		}
		room := x.parts[:cap(x.parts)]
		if x.buf != nil || len(x.parts) != 0 || len(x.ends) != 0 || len(room) > KeptPieces {
			t.Errorf("%d pieces: %d bytes, %d parts, room for %d", pieces, len(x.buf), len(x.parts), len(room))
		}
		for _, p := range room {
			if p != nil {
				t.Errorf("%d pieces: one is there", pieces)
			}
		}
		if n, f := r.ReadAt(make([]byte, 2), 0); n != 0 || f != Invalidated {
			t.Errorf("%d bytes, %v", n, f)
		}
	}
}
