//go:build linux || darwin

package memory

import (
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// vanishing is a region of two pages of which the second may not be touched any more.
func vanishing(t *testing.T, table *Table) (r *Region, page int) {
	t.Helper()
	page = os.Getpagesize()
	buf, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	testrig.Must(t, err)
	t.Cleanup(func() { testrig.Must(t, syscall.Munmap(buf)) })
	r, err = table.Register(buf, Options{Access: allRemote | RemoteAtomic, PD: pd, Base: base, Vanishes: true})
	testrig.Must(t, err)
	testrig.Must(t, syscall.Mprotect(buf[page:], syscall.PROT_NONE))
	return r, page
}

// reaches are all ways to reach n bytes at an offset of a region.
var reaches = map[string]func(d Domain, r *Region, off, n int) Fault{
	"Place": func(d Domain, r *Region, off, n int) Fault {
		return d.Place(r.STag(), base+uint64(off), layout.Plain(make([]byte, n)))
	},
	"Load": func(d Domain, r *Region, off, n int) Fault {
		return d.Load(into(make([]byte, n)), n, r.STag(), base+uint64(off))
	},
	"LocalPlace": func(d Domain, r *Region, off, n int) Fault {
		return d.LocalPlace(r, new(Term), off, layout.Plain(make([]byte, n)))
	},
	"LocalLoad": func(d Domain, r *Region, off, n int) Fault {
		return d.LocalLoad(into(make([]byte, n)), r, new(Term), off, n)
	},
	"ReadAt":  func(_ Domain, r *Region, off, n int) Fault { _, f := r.ReadAt(make([]byte, n), off); return f },
	"WriteAt": func(_ Domain, r *Region, off, n int) Fault { return r.WriteAt(make([]byte, n), off) },
	"Atomic": func(d Domain, r *Region, off, _ int) Fault {
		_, f := d.Atomic(r.STag(), base+uint64(off), increment)
		return f
	},
	"Run": func(d Domain, r *Region, off, n int) Fault {
		var run Run
		defer run.End()
		if !d.BeginPlace(&run, r.STag(), base+uint64(off), n) {
			return Bounds
		}
		if !run.Place(base+uint64(off), make([]byte, n)) {
			return Vanished
		}
		return None
	},
}

// Memory that is gone is a fault of whoever reaches for it, in whatever way, and all locks are free after it.
func TestVanished(t *testing.T) {
	for name, reach := range reaches {
		t.Run(name, func(t *testing.T) {
			table := NewTable()
			d := local(table)
			r, page := vanishing(t, table)
			for _, c := range []struct {
				off, n int
				want   Fault
			}{{page - 8, 8, None}, {page, 8, Vanished}, {2*page - 8, 8, Vanished}, {0, 2 * page, Vanished},
				{0, page, None}, {page, page, Vanished}} {
				if name == "Atomic" && c.n != 8 {
					continue
				}
				if f := reach(d, r, c.off, c.n); f != c.want {
					t.Errorf("%d bytes at %d: %v, want %v", c.n, c.off, f, c.want)
				}
			}
			if f := table.Revoke(r); f != None { // which takes every lock
				t.Error(f)
			}
			if debug.SetPanicOnFault(false) {
				t.Error("faults of the goroutine are panics from now on")
			}
		})
	}
}

// Memory that vanishes is the region's from its first byte to its last, in each of its pieces, and what lies right
// before or after one is not.
func TestVanishedIn(t *testing.T) {
	page := os.Getpagesize()
	buf, err := syscall.Mmap(-1, 0, 7*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	testrig.Must(t, err)
	t.Cleanup(func() { testrig.Must(t, syscall.Munmap(buf)) })
	pages := func(from, to int) []byte { return buf[from*page : to*page] }
	whole := &extent{vanishes: true}
	newExtent(whole, pages(1, 3))
	several := &extent{vanishes: true}
	newExtent(several, pages(1, 2), pages(5, 6), pages(3, 4))
	data := func(n int) uintptr { return uintptr(unsafe.Pointer(&buf[n])) }
	for _, c := range []struct {
		at             int
		whole, several bool
	}{
		{page - 1, false, false}, {page, true, true}, {page + 1, true, true}, {2*page - 1, true, true},
		{2 * page, true, false}, {3*page - 1, true, false},
		{3 * page, false, true}, {4*page - 1, false, true}, {4 * page, false, false},
		{5*page - 1, false, false}, {5 * page, false, true}, {6*page - 1, false, true}, {6 * page, false, false},
	} {
		if whole.has(data(c.at)) != c.whole || several.has(data(c.at)) != c.several {
			t.Errorf("byte %d of page %d: in one piece of two pages %v, of three pieces %v",
				c.at%page, c.at/page, !c.whole, !c.several)
		}
	}
}

// wary takes bytes, and notes before which of them it was told to be careful.
type wary struct{ told, took []int }

func (w *wary) BeCareful()    { w.told = append(w.told, len(w.took)) }
func (w *wary) Take(p []byte) { w.took = append(w.took, len(p)) }

// Who takes bytes that may vanish is told before the first of them, and who takes others is not.
func TestBeCareful(t *testing.T) {
	table := NewTable()
	stays, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	goes, _ := vanishing(t, table)
	for r, want := range map[*Region][]int{stays: nil, goes: {0}} {
		var w wary
		if f := local(table).LocalLoad(&w, r, new(Term), 0, 8); f != None || !slices.Equal(w.told, want) ||
			!slices.Equal(w.took, []int{8}) {
			t.Errorf("fault %v, taken %v, told before %v, want %v", f, w.took, w.told, want)
		}
	}
}

// stumbles is a Taker with a mistake of its own.
type stumbles struct{ at *int }

func (s stumbles) Take([]byte) { *s.at++ }

// elsewhere is one that reaches for other memory that is gone.
type elsewhere []byte

func (e elsewhere) Take(p []byte) { copy(p, e) }

// A panic that has nothing to do with the memory stays one.
func TestOtherPanics(t *testing.T) {
	table := NewTable()
	r, page := vanishing(t, table)
	gone, _ := vanishing(t, table)
	for name, taker := range map[string]Taker{"nil": stumbles{}, "other memory": elsewhere(gone.first.buf[page:])} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f := local(table).LocalLoad(taker, r, new(Term), 0, 8)
			t.Errorf("%s: %v", name, f)
		}()
	}
	if f := table.Revoke(r); f != None {
		t.Error(f)
	}
}
