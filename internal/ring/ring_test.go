package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// contents lists the entries, the oldest first.
func contents(r *Ring[int]) (v []int) {
	for pos := r.Head(); pos != r.Tail(); pos++ {
		v = append(v, *r.At(pos))
	}
	return v
}

// A pair is a Ring and what it ought to hold.
type pair struct {
	t     testing.TB
	r     Ring[int]
	want  []int
	next  int
	taken uint64
}

// step does one operation to both: b says which.
func (p *pair) step(b byte) {
	switch n := int(b >> 3); b & 7 {
	case 0, 1, 2:
		p.add(n)
	case 3, 4:
		p.pop(n)
	case 5:
		p.remove(n)
	case 6:
		p.r.Trim()
		if p.r.Trim(); len(p.r.buf) > 2*len(p.want) {
			p.t.Fatalf("room for %d with %d entries, after two Trims", len(p.r.buf), len(p.want))
		}
	case 7:
		p.r.SetLimit(n)
	}
	p.check()
}

// add is a burst of n entries, as far as there is room for it.
func (p *pair) add(n int) {
	for ; n > 0 && !p.r.Full(); n-- {
		p.next++
		p.want = append(p.want, p.next)
		e := p.r.Add()
		if *e != 0 {
			p.t.Fatalf("a new entry holds %d", *e)
		}
		*e = p.next
	}
}

func (p *pair) pop(n int) {
	for ; n > 0 && len(p.want) > 0; n-- {
		front := *p.r.Front()
		got := p.want[0] + 1
		if n%2 == 0 {
			got = p.r.Pop()
		} else {
			p.r.Take(&got)
		}
		if got != p.want[0] || front != got {
			p.t.Fatalf("popped %d after %d at the front, want %d", got, front, p.want[0])
		}
		p.want = p.want[1:]
		p.taken++
	}
}

func (p *pair) remove(n int) {
	if n < len(p.want) {
		p.r.Remove(p.r.Head() + uint64(n))
		p.want = slices.Delete(p.want, n, n+1)
	}
}

func (p *pair) check() {
	switch {
	case !slices.Equal(contents(&p.r), p.want):
		p.t.Fatalf("holds %v, want %v", contents(&p.r), p.want)
	case p.r.Len() != len(p.want) || p.r.Head() != p.taken:
		p.t.Fatalf("%d entries from %d on, want %d from %d on", p.r.Len(), p.r.Head(), len(p.want), p.taken)
	case p.r.Full() != (len(p.want) >= p.r.Limit()):
		p.t.Fatalf("full: %t, with %d of %d", p.r.Full(), len(p.want), p.r.Limit())
	}
	p.clean()
}

// clean holds that nothing is kept of entries that have gone.
func (p *pair) clean() {
	held := 0
	for _, v := range p.r.buf[:cap(p.r.buf)] {
		if v != 0 {
			held++
		}
	}
	if held != len(p.want) {
		p.t.Fatalf("%d entries in memory, want %d", held, len(p.want))
	}
}

// TestModel compares a Ring with a slice over long random dialogues.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := &pair{t: t, r: New[int](1 + rnd.IntN(100))}
		for range 500 {
			p.step(byte(rnd.Uint32()))
		}
	}
}

// FuzzModel is TestModel with what the fuzzer comes up with.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0xf8, 0xfb, 0x3f, 0x06, 0x40, 0x2d})
	f.Fuzz(func(t *testing.T, steps []byte) {
		p := &pair{t: t, r: New[int](31)}
		for _, b := range steps {
			p.step(b)
		}
	})
}

// fill adds n entries, and drain takes out all.
func fill(r *Ring[int], n int) {
	for range n {
		*r.Add() = 1
	}
}

func drain(r *Ring[int]) {
	for r.Len() > 0 {
		r.Pop()
	}
}

// TestGrowth: memory is made when it is needed, by doubling, and never for more than the limit.
func TestGrowth(t *testing.T) {
	r := New[int](100)
	room := []int{len(r.buf)}
	for range 100 {
		fill(&r, 1)
		if n := len(r.buf); n != room[len(room)-1] {
			room = append(room, n)
		}
	}
	if want := []int{0, 1, 2, 4, 8, 16, 32, 64, 100}; !slices.Equal(room, want) {
		t.Errorf("room for %v, want %v", room, want)
	}
}

// TestTrim: what a burst took is given back when it was not needed from one Trim to the
// next, and a Ring that is filled and emptied all the time keeps its memory.
func TestTrim(t *testing.T) {
	r := New[int](128)
	fill(&r, 128)
	if r.Slack() {
		t.Error("slack while it is full")
	}
	drain(&r)
	r.Trim()
	if len(r.buf) != 128 || !r.Slack() {
		t.Errorf("room for %d at the first Trim after a burst, slack: %t", len(r.buf), r.Slack())
	}
	fill(&r, 10)
	r.Trim()
	if len(r.buf) != 16 {
		t.Errorf("room for %d, with 10 entries used", len(r.buf))
	}
	drain(&r)
	r.Trim()
	r.Trim()
	if len(r.buf) != 0 || r.Slack() {
		t.Errorf("room for %d when nothing is used, slack: %t", len(r.buf), r.Slack())
	}
}

// TestSlack: there is slack where at most a quarter of the memory is in use.
func TestSlack(t *testing.T) {
	for _, test := range []struct {
		most, left int
		want       bool
	}{{1, 0, true}, {1, 1, false}, {4, 0, true}, {4, 1, true}, {4, 2, false}, {8, 2, true}, {8, 3, false}} {
		r := New[int](100)
		fill(&r, test.most)
		for r.Len() > test.left {
			r.Pop()
		}
		if r.Slack() != test.want {
			t.Errorf("%d of %d: slack %t", test.left, test.most, !test.want)
		}
	}
	if r := New[int](100); r.Slack() {
		t.Error("slack where there is no memory")
	}
}

// TestSteady: a Ring whose use stays the same does not allocate, whatever is trimmed meanwhile.
func TestSteady(t *testing.T) {
	r := New[int](128)
	for _, n := range []int{1, 2, 3, 16, 100, 128} {
		round := func() { fill(&r, n); drain(&r); r.Trim() }
		round()
		if got := testing.AllocsPerRun(100, round); got != 0 {
			t.Errorf("%v allocations in rounds of %d", got, n)
		}
	}
}

func BenchmarkAddPop(b *testing.B) {
	r := New[[16]uint64](128)
	b.ReportAllocs()
	for b.Loop() {
		for range 8 {
			r.Add()[0] = 1
		}
		for range 8 {
			r.Pop()
		}
	}
}
