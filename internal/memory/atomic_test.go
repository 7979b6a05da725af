package memory

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// words returns n words as bytes, and as what they are.
func words(n int) ([]byte, []uint64) {
	w := make([]uint64, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n), w
}

func increment(v uint64) uint64 { return v + 1 }

// Proves A12, A13: an Atomic Operation reads and replaces one word, in the machine's byte order,
// and nothing beside it.
func TestAtomic(t *testing.T) {
	buf, w := words(3)
	w[0], w[1], w[2] = 1, math.MaxUint64, 3
	r, err := NewTable().Register(buf, Options{Access: RemoteAtomic, PD: pd, Base: base})
	testrig.Must(t, err)
	old, f := local(r.table).Atomic(r.STag(), base+8, increment)
	if f != None || old != math.MaxUint64 || w[0] != 1 || w[1] != 0 || w[2] != 3 {
		t.Errorf("was %#x: %v; now %#x", old, f, w)
	}
	if r.Access() != RemoteAtomic|LocalWrite {
		t.Errorf("the owner has %b", r.Access())
	}
}

// Proves A14, A16: which Atomic Operations are refused, and why; then memory is as it was. Alignment
// is that of the address, which the region's base and tagged offsets say nothing of.
func TestAtomicRefused(t *testing.T) {
	table := NewTable()
	buf, w := words(8)
	region := func(o Options, b []byte) *Region {
		r, err := table.Register(b, o)
		testrig.Must(t, err)
		return r
	}
	whole := region(Options{Access: RemoteAtomic, PD: pd, Base: base}, buf)
	odd := region(Options{Access: RemoteAtomic, PD: pd, Base: 1004}, buf[3:])
	short := region(Options{Access: RemoteAtomic, PD: pd}, buf[:7])
	plain := region(Options{Access: RemoteRead | RemoteWrite | LocalWrite | RemoteInvalidate, PD: pd}, buf)
	bound := region(Options{Access: RemoteAtomic, PD: pd, Stream: stream + 1}, buf)
	void, gone := region(Options{Access: RemoteAtomic, PD: pd}, buf), region(Options{Access: RemoteAtomic, PD: pd}, buf)
	local(table).LocalInvalidate(void)
	table.Revoke(gone)
	for _, tt := range []struct {
		name string
		d    Domain
		r    *Region
		to   uint64
		want Fault
	}{
		{"the last word", local(table), whole, base + 56, None},
		{"one byte too far", local(table), whole, base + 57, Bounds},
		{"over the end", local(table), whole, base + 64, Bounds},
		{"one before", local(table), whole, base - 1, Bounds},
		{"wrap", local(table), whole, math.MaxUint64 - 3, Wrap},
		{"not aligned", local(table), whole, base + 4, Unaligned},
		{"an odd offset of an aligned address", local(table), odd, 1009, None},
		{"an aligned offset of an odd address", local(table), odd, 1008, Unaligned},
		{"no whole word", local(table), short, 0, Bounds},
		{"all rights but this", local(table), plain, 0, NoRemoteAtomic},
		{"rights before alignment", local(table), plain, 4, NoRemoteAtomic},
		{"bound to another stream", local(table), bound, 0, OtherStream},
		{"a QP that lets nobody change words", Domain{table, pd, stream, RemoteAtomic}, whole, base, Denied},
		{"a QP that lets nobody read and write", Domain{table, pd, stream,
			RemoteRead | RemoteWrite}, whole, base, None},
		{"another Protection Domain", Domain{table, pd + 1, stream, 0}, whole, base, OtherDomain},
		{"invalidated", local(table), void, 0, Invalidated},
		{"revoked", local(table), gone, 0, InvalidSTag},
	} {
		clear(w)
		if f := tt.d.CheckAtomic(tt.r.STag(), tt.to); f != tt.want {
			t.Errorf("%s: request: %v, want %v", tt.name, f, tt.want)
		}
		_, f := tt.d.Atomic(tt.r.STag(), tt.to, increment)
		if sum := w[0] + w[1] + w[7]; f != tt.want || (sum != 0) != (f == None) {
			t.Errorf("%s: %v, want %v; memory %x", tt.name, f, tt.want, w)
		}
	}
}

// Several streams add to one word, through two regions that both have it, and so does the
// consumer with sync/atomic: no addition is lost.
//
// Proves A27: atomicity within one RNIC (RFC 7306, section 5.3), and with local atomics.
func TestAtomicTogether(t *testing.T) {
	const each = 2000
	buf, w := words(2)
	table := NewTable()
	one, err := table.Register(buf, Options{Access: RemoteAtomic, PD: pd})
	testrig.Must(t, err)
	two, err := table.Register(buf[8:], Options{Access: RemoteAtomic, PD: pd + 1})
	testrig.Must(t, err)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range each {
				local(table).Atomic(one.STag(), 8, increment)
			}
		})
		all.Go(func() {
			for range each {
				Domain{table, pd + 1, stream, 0}.Atomic(two.STag(), 0, increment)
			}
		})
		all.Go(func() {
			for range each {
				atomic.AddUint64(&w[1], 1)
			}
		})
	}
	all.Wait()
	if w[1] != 6*each {
		t.Errorf("%d additions of %d", w[1], 6*each)
	}
}

// The program uses a word beside a peer's Writes. The race detector agrees that locks keep them apart; an Atomic
// Operation would do so too, and is not among them.
func TestOwnWordBesideWrites(t *testing.T) {
	const each = 1000
	for _, own := range []func(r *Region) (uint64, Fault){
		func(r *Region) (uint64, Fault) { return r.Load64(8) },
		func(r *Region) (uint64, Fault) { return r.Change64(8, increment) },
	} {
		buf, _ := words(4)
		table := NewTable()
		r, err := table.Register(buf, Options{Access: RemoteWrite, PD: pd})
		testrig.Must(t, err)
		var all sync.WaitGroup
		all.Go(func() {
			for range each {
				if f := local(table).Place(r.STag(), 0, layout.Plain(make([]byte, 32))); f != None {
					t.Error(f)
				}
			}
		})
		for range each {
			if v, f := own(r); v >= each || f != None {
				t.Errorf("%d: %v", v, f)
			}
		}
		all.Wait()
	}
}

// The program's own accesses of a word: of which region and offset they are, and when there is none.
func TestOwnWord(t *testing.T) {
	table := NewTable()
	buf, w := words(3)
	r, err := table.Register(buf, Options{PD: pd, Base: base})
	testrig.Must(t, err)
	w[0], w[1], w[2] = 1, 2, math.MaxUint64
	if v, f := r.Load64(8); v != 2 || f != None {
		t.Errorf("%d: %v", v, f)
	}
	if v, f := r.Change64(16, increment); v != math.MaxUint64 || f != None || w[0] != 1 || w[1] != 2 || w[2] != 0 {
		t.Errorf("was %#x: %v; now %#x", v, f, w)
	}
	refused := func(r *Region, off int, want Fault) {
		t.Helper()
		_, load := r.Load64(off)
		old, change := r.Change64(off, func(uint64) uint64 { t.Error("changed"); return 0 })
		if load != want || change != want || old != 0 {
			t.Errorf("offset %d: %v and %v, want %v", off, load, change, want)
		}
	}
	for _, off := range []int{-8, -1, 17, 24, math.MaxInt, math.MinInt} {
		refused(r, off, Bounds)
	}
	for _, off := range []int{1, 4, 15} {
		refused(r, off, Unaligned)
	}
	none, err := table.Allocate(pd, Most{Pieces: 2, Bytes: 24})
	testrig.Must(t, err)
	refused(none, 0, Invalidated)
	pieces := Registration{Memory: [][]byte{buf[:8], buf[8:12], buf[12:]}}
	if f := local(table).FastRegister(none, &pieces); f != TooLarge {
		t.Fatal(f)
	}
	pieces.Memory = [][]byte{buf[:12], buf[16:]}
	if f := local(table).FastRegister(none, &pieces); f != None {
		t.Fatal(f)
	}
	refused(none, 8, Unaligned) // it is in two pieces
	if v, f := none.Load64(0); v != 1 || f != None {
		t.Errorf("%d: %v", v, f)
	}
	local(table).LocalInvalidate(none)
	refused(none, 0, Invalidated)
	local(table).LocalInvalidate(r)
	if v, f := r.Load64(8); v != 2 || f != None { // the program has its memory still
		t.Errorf("%d: %v", v, f)
	}
	table.Revoke(r)
	refused(r, 8, InvalidSTag)
	refused(r, 24, InvalidSTag)
}
