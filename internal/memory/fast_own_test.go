package memory

import (
	"sync"
	"sync/atomic"
	"testing"
)

// The program reads and writes a region while it is registered as large and as small memory by turns: each of its calls
// is about one registration. The race detector agrees that two of them exclude each other, also where one registration
// has followed the other on the same memory.
func TestFastReadAt(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{1, 1 << 18}), local(table)
	buf := make([]byte, 1<<18)
	var over atomic.Bool
	var wg sync.WaitGroup
	for name, access := range map[string]func(p []byte) (int, Fault){
		"ReadAt":  func(p []byte) (int, Fault) { return r.ReadAt(p, 0) },
		"WriteAt": func(p []byte) (int, Fault) { return r.Size(), r.WriteAt(p[:r.Size()], 0) },
		"Update": func([]byte) (n int, f Fault) {
			f = r.Update(func(b []byte) { b[0], n = b[0]+1, len(b) })
			return n, f
		},
	} {
		wg.Go(func() {
			for p := make([]byte, len(buf)); !over.Load(); {
				n, f := access(p)
				if f == None && n != len(buf) && n != 10 || f != None && f != Invalidated &&
					(f != Bounds || name != "WriteAt") {
					t.Errorf("%s of %d bytes: %v", name, n, f)
				}
			}
		})
	}
	for i := range 4000 {
		g := Registration{Memory: [][]byte{buf}}
		if i%2 == 1 {
			g.Memory[0] = buf[:10]
		}
		if f := d.FastRegister(r, &g); f != None {
			t.Fatal(f)
		}
		if f := d.LocalInvalidate(r); f != None {
			t.Fatal(f)
		}
	}
	over.Store(true)
	wg.Wait()
}

// Memory whose registration has ended is the program's own: nothing of it is read or written through the region,
// whether the peer or the program ended it. A region that Register made keeps its memory until it is revoked.
func TestFastWriteAtAfterEnd(t *testing.T) {
	for name, fast := range map[string]bool{"FastRegister": true, "Register": false} {
		table, buf := NewTable(), []byte("as it was")
		d, want := local(table), None
		r, err := table.Register(buf, Options{PD: pd, Stream: stream, Access: allRemote})
		if fast {
			r, want = allocate(t, table, Most{1, 16}), Invalidated
			if f := r.WriteAt(nil, 0); f != Invalidated {
				t.Errorf("before there is any: %v", f)
			}
			d.FastRegister(r, &Registration{Memory: [][]byte{buf}, Access: allRemote, Private: true})
		}
		if f := d.Invalidate(r.STag()); f != None || err != nil {
			t.Fatal(f, err)
		}
		if n, f := r.ReadAt(make([]byte, 4), 0); f != want || fast == (n != 0) {
			t.Errorf("%s: ReadAt: %d bytes, %v", name, n, f)
		}
		if f := r.WriteAt([]byte("new"), 0); f != want || fast == (string(buf) != "as it was") {
			t.Errorf("%s: WriteAt: %v, %q", name, f, buf)
		}
		called := false
		if f := r.Update(func([]byte) { called = true }); f != want || called == fast {
			t.Errorf("%s: Update: %v", name, f)
		}
		if f := r.Detach(); f != want {
			t.Errorf("%s: Detach: %v", name, f)
		}
	}
}

// What is read begins where the region has something, and ends with it; what is written is all in it or not written.
func TestOwnBounds(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{PD: pd})
	p := make([]byte, 40)
	for off, want := range map[int]int{0: 32, 30: 2, 32: 0, 33: 0} {
		if n, f := r.ReadAt(p, off); n != want || f != None {
			t.Errorf("at %d: %d bytes, %v", off, n, f)
		}
	}
	for off, want := range map[int]Fault{31: None, 32: Bounds, -1: Bounds} {
		if f := r.WriteAt(p[:1], off); f != want {
			t.Errorf("one byte at %d: %v", off, f)
		}
	}
}
