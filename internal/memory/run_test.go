package memory

import (
	"bytes"
	"math"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// large is a region of two stripes and a part of a third.
func large(t *testing.T, table *Table) (*Region, []byte) {
	t.Helper()
	buf := make([]byte, 150<<10)
	r, err := table.Register(buf, Options{Access: allRemote, PD: pd, Base: base})
	testrig.Must(t, err)
	return r, buf
}

// begins are the two ways to begin a Run with n bytes at an offset of a region.
var begins = map[string]func(d Domain, run *Run, r *Region, off, n int) bool{
	"a peer's Write": func(d Domain, run *Run, r *Region, off, n int) bool {
		return d.BeginPlace(run, r.STag(), r.Base()+uint64(off), n)
	},
	"the sink of a Read": func(d Domain, run *Run, r *Region, off, n int) bool {
		return d.BeginLocalPlace(run, r, new(Term), off, n, math.MaxInt, r.Base()+uint64(off))
	},
}

// A Run takes segments as far as the locks reach that its first one needs, and no byte that lies elsewhere.
func TestRunReach(t *testing.T) {
	const stripe = 64 << 10
	for name, begin := range begins {
		for _, c := range []struct{ off, n, end int }{
			{0, 1, stripe},
			{100, 1000, stripe},
			{stripe - 10, 10, stripe},
			{stripe - 10, 11, 2 * stripe},
			{stripe, stripe, 2 * stripe},
			{2 * stripe, 10, 150 << 10},
		} {
			table := NewTable()
			r, buf := large(t, table)
			var run Run
			if !begin(local(table), &run, r, c.off, c.n) {
				t.Fatalf("%s: %+v: no Run", name, c)
			}
			for _, p := range []struct {
				off, n int
				want   bool
			}{{c.off, c.n, true}, {c.end - 1, 1, true}, {c.end, 1, false}, {c.end - 1, 2, false},
				{c.off - 1, 1, false}, {c.off - 1, 2, false}} {
				clear(buf)
				if got := run.Place(base+uint64(p.off), bytes.Repeat([]byte{1}, p.n)); got != p.want {
					t.Errorf("%s: %+v: %d bytes at %d: %t", name, c, p.n, p.off, got)
				}
				if n := bytes.Count(buf, []byte{1}); p.want && (n != p.n || buf[p.off] != 1) || !p.want && n != 0 {
					t.Errorf("%s: %+v: %d bytes at %d: %d are written", name, c, p.n, p.off, n)
				}
			}
			run.End()
			if run.Place(base+uint64(c.off), []byte{1}) {
				t.Errorf("%s: a Run that has ended goes on", name)
			}
		}
	}
}

// A Run of the consumer's own ends where that says, also within the locks, and takes none for bytes after that.
func TestRunEnds(t *testing.T) {
	table := NewTable()
	r, _ := large(t, table)
	for _, end := range []int{1000, 64<<10 + 1} {
		var run Run
		if local(table).BeginLocalPlace(&run, r, new(Term), 900, end-900+1, end-900, 0) {
			t.Fatalf("a Run over the end at %d", end)
		}
		if !local(table).BeginLocalPlace(&run, r, new(Term), 900, end-900, end-900, 0) ||
			run.Place(1, make([]byte, end-900)) || !run.Place(0, make([]byte, end-900)) {
			t.Fatalf("no Run up to the end at %d, or one after it", end)
		}
		run.End()
		if f := local(table).LocalPlace(r, new(Term), 0, layout.Plain(make([]byte, 150<<10))); f != None {
			t.Fatal(f) // and it ends: all locks are free
		}
	}
}

// A lock reaches to the end of its part, also where that is as far as an int goes.
func TestReach(t *testing.T) {
	for _, c := range []struct{ size, off, most, want int }{
		{200 << 10, 1, 200 << 10, 64 << 10},
		{200 << 10, 64 << 10, 200 << 10, 64 << 10},
		{200 << 10, 64<<10 + 1, 200 << 10, 128 << 10},
		{200 << 10, 1, 1000, 1000},
		{200 << 10, 200 << 10, 200 << 10, 200 << 10},
		{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt},
		{math.MaxInt, 1, math.MaxInt, math.MaxInt>>4 + 1},
	} {
		s := newStripes(c.size)
		if got := s.reach(c.off, c.most); got != c.want {
			t.Errorf("%+v: reaches to %d", c, got)
		}
	}
}

// What a window does not offer is not a Run's, whatever lock it is under; and of memory in several pieces all are.
func TestRunBounds(t *testing.T) {
	table := NewTable()
	r, buf := large(t, table)
	w, d := window(t, table, false), local(table)
	if f := d.Bind(w, Binding{Region: r, Offset: 10, Length: 100, Base: 1000, Access: RemoteWrite}); f != None {
		t.Fatal(f)
	}
	var run Run
	if !d.BeginPlace(&run, w.STag(), 1010, 1) || !run.Place(1099, []byte{7}) || run.Place(1100, []byte{7}) ||
		run.Place(1009, []byte{7}) {
		t.Error("a window's bounds are not those of its Run")
	}
	run.End()
	if buf[109] != 7 || bytes.Count(buf, []byte{7}) != 1 {
		t.Error("the byte is not in its place")
	}

	parts := allocate(t, table, Most{3, 30})
	g := Registration{Memory: [][]byte{make([]byte, 10), make([]byte, 5), make([]byte, 10)},
		Access: RemoteWrite, Key: 1}
	if f := d.FastRegister(parts, &g); f != None {
		t.Fatal(f)
	}
	if !d.BeginPlace(&run, parts.STag(), 0, 1) || !run.Place(8, numbered(15)) {
		t.Error("no Run over several pieces")
	}
	run.End()
	if got := bytes.Join(g.Memory, nil); !bytes.Equal(got[8:23], numbered(15)) {
		t.Errorf("pieces have % x", got)
	}
}

// A Run ends by itself, for others that wait for its locks.
func TestRunIsBounded(t *testing.T) {
	table := NewTable()
	r, _ := large(t, table)
	var run Run
	if !local(table).BeginPlace(&run, r.STag(), base, 1) {
		t.Fatal("no Run")
	}
	n := 0
	for run.Place(base, []byte{1}) {
		n++
	}
	run.End()
	if n != maxRun {
		t.Errorf("%d segments", n)
	}
}

// Whoever takes the right away waits for the end of a Run: after that nothing is placed.
//
// Proves Z11: when an STag is invalidated, or memory revoked, no access is under way.
func TestRunHoldsOff(t *testing.T) {
	for name, begin := range begins {
		for what, end := range map[string]func(table *Table, r *Region) Fault{
			"invalidated": func(table *Table, r *Region) Fault { return local(table).LocalInvalidate(r) },
			"revoked":     func(table *Table, r *Region) Fault { return table.Revoke(r) },
		} {
			table := NewTable()
			r, buf := large(t, table)
			var run Run
			if !begin(local(table), &run, r, 0, 1) {
				t.Fatalf("%s: no Run", name)
			}
			done := make(chan Fault)
			go func() { done <- end(table, r) }()
			for i := range 50 {
				select {
				case f := <-done:
					t.Fatalf("%s, %s: %v before the Run has ended", name, what, f)
				default:
				}
				if !run.Place(base+uint64(i), []byte{1}) {
					t.Fatalf("%s, %s: a Run has ended too early", name, what)
				}
			}
			run.End()
			if f := <-done; f != None {
				t.Fatalf("%s, %s: %v", name, what, f)
			}
			before := bytes.Clone(buf)
			if begin(local(table), &run, r, 0, 1) {
				t.Errorf("%s, %s: another Run begins", name, what)
			}
			if f := local(table).Place(r.STag(), base, layout.Plain([]byte{9})); f == None ||
				!bytes.Equal(buf, before) {
				t.Errorf("%s, %s: something is placed afterwards", name, what)
			}
		}
	}
}
