package memory

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

func allocate(t rapid.TB, table *Table, most Most) *Region {
	t.Helper()
	r, err := table.Allocate(pd, most)
	testrig.Must(t, err)
	return r
}

// RDMA verbs 7: a region goes from Invalid to Valid by a registration with the consumer's key, and
// back by an invalidation; it keeps its index and what it was allocated for.
func TestFastRegister(t *testing.T) {
	table := NewTable()
	table.AddStream(pd)
	r, d := allocate(t, table, Most{2, 32}), local(table)
	if r.Valid() || r.STag()&keyMask != 0 || r.Size() != 0 || !r.Fast() {
		t.Errorf("STag %#x, valid: %t", r.STag(), r.Valid())
	}
	if f := d.LocalCheck(r, new(Term), 0, 1, false); f != Invalidated {
		t.Error(f)
	}
	index := r.STag()
	for key, buf := range [][]byte{make([]byte, 8), make([]byte, 32)} {
		old := r.STag()
		reg := &Registration{Memory: [][]byte{buf}, Base: base,
			Access: RemoteWrite | RemoteInvalidate, Key: uint8(key) + 1}
		if f := d.FastRegister(r, reg); f != None {
			t.Fatal(f)
		}
		if r.STag() != index|uint32(key)+1 || !r.Valid() || r.Size() != len(buf) ||
			r.Access() != reg.Access|LocalWrite || r.Base() != base {
			t.Errorf("STag %#x, %d bytes", r.STag(), r.Size())
		}
		if f := d.FastRegister(r, reg); f != StillValid {
			t.Errorf("once more: %v", f)
		}
		if f := d.Place(r.STag(), base+uint64(len(buf))-1, data); f != None || buf[len(buf)-1] != 0xee {
			t.Error(f)
		}
		if f := d.Place(old, base, data); f != InvalidSTag {
			t.Errorf("by the key before: %v", f)
		}
		if f := d.Invalidate(r.STag()); f != None || r.Valid() {
			t.Error(f)
		}
		if f := d.Place(r.STag(), base, data); f != Invalidated {
			t.Error(f)
		}
	}
	if f := table.Revoke(r); f != None {
		t.Error(f)
	}
	if f := d.FastRegister(r, &Registration{}); f != InvalidSTag {
		t.Error(f)
	}
}

// RDMA verbs 8.3: what a registration cannot be.
func TestFastRegisterRefused(t *testing.T) {
	table := NewTable()
	r, plain := allocate(t, table, Most{2, 8}), allocate(t, table, Most{})
	three := [][]byte{make([]byte, 1), make([]byte, 1), make([]byte, 1)}
	for _, tt := range []struct {
		name string
		d    Domain
		r    *Region
		g    Registration
		want Fault
	}{
		{"another Protection Domain", Domain{table, pd + 1, stream, 0}, r, Registration{}, OtherDomain},
		{"a list that is too long", local(table), r, Registration{Memory: three}, TooLarge},
		{"too many bytes", local(table), r, Registration{Memory: [][]byte{make([]byte, 5), make([]byte, 4)}},
			TooLarge},
		{"a region that was not allocated for it", local(table), plain, Registration{Memory: three[:1]}, TooLarge},
		{"offsets wrap", local(table), r, Registration{Memory: three[:2], Base: math.MaxUint64}, Wrap},
	} {
		if f := tt.d.FastRegister(tt.r, &tt.g); f != tt.want || tt.r.Valid() {
			t.Errorf("%s: %v, want %v", tt.name, f, tt.want)
		}
	}
	for off, want := range map[int]Fault{0: None, 7: None, 8: Bounds, -1: Bounds, math.MaxInt: Bounds} {
		if f := local(table).LocalMay(r, off, 1, true); f != want {
			t.Errorf("a later use of a byte at %d: %v, want %v", off, f, want)
		}
	}
	if f := (Domain{table, pd + 1, stream, 0}).LocalMay(r, 0, 1, true); f != OtherDomain {
		t.Error(f)
	}
	owned, _ := register(t, table, Options{PD: pd, Access: LocalWrite})
	for _, tt := range []struct {
		r      *Region
		off, n int
		want   Fault
	}{{nil, 0, 0, None}, {nil, 0, 1, InvalidSTag}, {r, 9, 0, None}, {owned, 0, 1, None},
		{r, 0, 8, None}, {r, 0, 9, Bounds}} {
		if f := local(table).LocalMay(tt.r, tt.off, tt.n, true); f != tt.want {
			t.Errorf("%d bytes at %d: %v, want %v", tt.n, tt.off, f, tt.want)
		}
	}
}

// A private registration is for the stream that it was done on.
func TestFastRegisterPrivate(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{1, 8}), local(table)
	for _, private := range []bool{true, false} {
		if f := d.FastRegister(r, &Registration{Memory: [][]byte{make([]byte, 8)}, Access: RemoteWrite,
			Private: private}); f != None {
			t.Fatal(f)
		}
		f := (Domain{table, pd, stream + 1, 0}).Place(r.STag(), 0, data)
		if private && f != OtherStream || !private && f != None {
			t.Errorf("private: %t: %v", private, f)
		}
		d.LocalInvalidate(r)
	}
}

// Memory in several pieces is as one of their length, for peers and for its owner; an Atomic
// Operation needs its word in one piece.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 6).Draw(t, "pieces")
		table := NewTable()
		d, all := local(table), []byte(nil)
		var list [][]byte
		for _, n := range sizes {
			list = append(list, numbered(n + 2)[1:n+1:n+1])
			all = append(all, list[len(list)-1]...)
		}
		r := allocate(t, table, Most{6, 240})
		if f := d.FastRegister(r, &Registration{Memory: list, Base: base,
			Access: allRemote | RemoteAtomic}); f != None {
			t.Fatal(f)
		}
		for i := range 4 {
			off := rapid.IntRange(0, len(all)).Draw(t, "offset")
			n := rapid.IntRange(0, len(all)-off).Draw(t, "bytes")
			p := bytes.Repeat([]byte{byte(off)}, n)
			switch rapid.IntRange(0, 3).Draw(t, "way") {
			case 0:
				d.Place(r.STag(), base+uint64(off), layout.Plain(p))
			case 1:
				d.LocalPlace(r, new(Term), off, layout.Plain(p))
			case 2:
				r.WriteAt(p, off)
			default:
				copy(p, all[off:])
			}
			copy(all[off:], p)
			var one, two taken
			three := make([]byte, n)
			d.Load(&one, n, r.STag(), base+uint64(off))
			d.LocalLoad(&two, r, new(Term), off, n)
			r.ReadAt(three, off)
			var four []byte
			r.Update(func(b []byte) { four = append(four, b...) })
			if before := bytes.Join(list, nil); i == 2 { // from now on, the region has memory of its own
				r.Detach()
				defer func() {
					if !bytes.Equal(bytes.Join(list, nil), before) {
						t.Error("what was detached has changed")
					}
				}()
			}
			if want := all[off : off+n]; !bytes.Equal(one, want) || !bytes.Equal(two, want) ||
				!bytes.Equal(three, want) || !bytes.Equal(four, all) {
				t.Fatalf("% x % x % x, want % x", one, two, three, want)
			}
		}
	})
	table := NewTable()
	r, buf := allocate(t, table, Most{2, 24}), make([]byte, 32)
	local(table).FastRegister(r, &Registration{Memory: [][]byte{buf[:12], buf[20:32]}, Access: RemoteAtomic})
	for to, want := range map[uint64]Fault{0: None, 8: Unaligned, 12: Unaligned, 16: None, 17: Bounds} {
		if f := local(table).CheckAtomic(r.STag(), to); f != want {
			t.Errorf("a word at %d: %v, want %v", to, f, want)
		}
	}
}

// taken keeps what it takes.
type taken []byte

func (b *taken) Take(p []byte) { *b = append(*b, p...) }
