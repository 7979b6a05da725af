package memory

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

const (
	pd, stream = 7, 70
	base       = 0x10000
)

// into takes bytes to where it is.
type into []byte

func (b into) Take(p []byte) { copy(b, p) }

var numbered = testrig.Numbered

// register has a region of the middle 32 of 64 bytes.
func register(t rapid.TB, table *Table, o Options) (*Region, []byte) {
	t.Helper()
	buf := numbered(64)
	r, err := table.Register(buf[16:48], o)
	testrig.Must(t, err)
	return r, buf
}

const allRemote = LocalWrite | RemoteWrite | RemoteRead

const remoteAccess = RemoteWrite | RemoteRead | RemoteAtomic

// local is the domain of the tests' stream.
func local(table *Table) Domain { return Domain{table, pd, stream, 0} }

// Proves D39, D40, D44, P24, P25, Z05, Z06, Z10, Z11, Z16-Z18: which accesses of a peer are
// refused, and why; the checks come in this order.
func TestRemoteAccess(t *testing.T) {
	table := NewTable()
	region, buf := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	bound, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base, Stream: stream})
	readable, _ := register(t, table, Options{Access: RemoteRead, PD: pd, Base: base})
	writable, _ := register(t, table, Options{Access: RemoteWrite, PD: pd, Base: base})
	own, _ := register(t, table, Options{Access: LocalWrite, PD: pd, Base: base})
	none, _ := register(t, table, Options{PD: pd, Base: base})
	gone, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	void, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	table.Revoke(gone)
	local(table).LocalInvalidate(void)
	ours := Domain{table, pd, stream, 0}
	for _, tt := range []struct {
		name        string
		d           Domain
		r           *Region
		to          uint64
		n           int
		write, read Fault
	}{
		{"all", ours, region, base, 32, None, None},
		{"first byte", ours, region, base, 1, None, None},
		{"last byte", ours, region, base + 31, 1, None, None},
		{"one before", ours, region, base - 1, 1, Bounds, Bounds},
		{"one byte too far", ours, region, base + 32, 1, Bounds, Bounds},
		{"one too long", ours, region, base, 33, Bounds, Bounds},
		{"over the end", ours, region, base + 31, 2, Bounds, Bounds},
		{"TO 0", ours, region, 0, 1, Bounds, Bounds},
		{"last TO", ours, region, math.MaxUint64, 1, Wrap, Wrap},
		{"wrap into the region", ours, region, math.MaxUint64 - 1, 64, Wrap, Wrap},
		{"bound to this stream", ours, bound, base, 1, None, None},
		{"bound to another stream", Domain{table, pd, stream + 1, 0}, bound, base, 1, OtherStream, OtherStream},
		{"another Protection Domain", Domain{table, pd + 1, stream, 0}, region, base, 1, OtherDomain, OtherDomain},
		{"another Protection Domain, same stream", Domain{table, pd + 1, stream, 0}, bound, base, 1,
			OtherDomain, OtherDomain},
		{"revoked", ours, gone, base, 1, InvalidSTag, InvalidSTag},
		{"invalidated", ours, void, base, 1, Invalidated, Invalidated},
		{"read only", ours, readable, base, 1, NoRemoteWrite, None},
		{"write only", ours, writable, base, 1, None, NoRemoteRead},
		{"local only", ours, own, base, 1, NoRemoteWrite, NoRemoteRead},
		{"no rights", ours, none, base, 1, NoRemoteWrite, NoRemoteRead},
		{"a QP that lets nobody write", Domain{table, pd, stream, RemoteWrite | RemoteAtomic},
			region, base, 1, Denied, None},
		{"a QP that lets nobody read", Domain{table, pd, stream, RemoteRead | RemoteAtomic},
			region, base, 1, None, Denied},
		{"rights of the memory before those of the QP", Domain{table, pd, stream, remoteAccess}, own, base, 1,
			NoRemoteWrite, NoRemoteRead},
		{"those of the QP before bounds", Domain{table, pd, stream, remoteAccess}, region, 0, 1, Denied, Denied},
		{"association before rights", Domain{table, pd + 1, stream, 0}, own, base, 1, OtherDomain, OtherDomain},
		{"rights before bounds", ours, own, 0, 1, NoRemoteWrite, NoRemoteRead},
		{"another table", Domain{NewTable(), pd, stream, 0}, region, base, 1, InvalidSTag, InvalidSTag},
		{"nothing, of nothing", Domain{table, pd + 1, stream, 0}, gone, math.MaxUint64, 0, None, None},
	} {
		p := make([]byte, tt.n)
		if f := tt.d.Place(tt.r.STag(), tt.to, layout.Plain(p)); f != tt.write {
			t.Errorf("%s: write: %v, want %v", tt.name, f, tt.write)
		}
		var run Run
		if begun := tt.n > 0 && tt.d.BeginPlace(&run, tt.r.STag(), tt.to,
			tt.n); begun != (tt.n > 0 && tt.write == None) {
			t.Errorf("%s: a Run of a Write begins: %t", tt.name, begun)
		}
		run.End()
		if f := tt.d.CheckRead(tt.r.STag(), tt.to, uint32(tt.n)); f != tt.read {
			t.Errorf("%s: request to read: %v, want %v", tt.name, f, tt.read)
		}
		if f := tt.d.Load(into(p), tt.n, tt.r.STag(), tt.to); f != tt.read {
			t.Errorf("%s: read: %v, want %v", tt.name, f, tt.read)
		}
	}
	if want := numbered(64); !bytes.Equal(buf[:16], want[:16]) || !bytes.Equal(buf[48:], want[48:]) {
		t.Error("bytes outside have changed")
	}
}

// Any access of a peer, against arithmetic without bounds.
//
// Proves Z10, Z11, Z12: what is allowed lies in the region, byte by byte, and all of
// it; nothing else changes or is read.
func TestAnyRemoteAccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable()
		at := rapid.SampledFrom([]uint64{0, 1, base, math.MaxUint64 - 40}).Draw(t, "base")
		r, buf := register(t, table, Options{Access: allRemote, PD: pd, Base: at})
		d := Domain{table, pd, stream, 0}
		off := rapid.IntRange(-40, 80).Draw(t, "offset")
		n := rapid.IntRange(1, 80).Draw(t, "bytes")
		inside := off >= 0 && off+n <= 32
		to := at + uint64(off)
		got := make([]byte, n)
		if f := d.Load(into(got), n, r.STag(), to); (f == None) != inside {
			t.Fatalf("read: %v", f)
		}
		want := numbered(64)
		if inside && !bytes.Equal(got, want[16+off:16+off+n]) || !inside && !bytes.Equal(got, make([]byte, n)) {
			t.Fatalf("read % x", got)
		}
		if inside {
			clear(want[16+off : 16+off+n])
		}
		if f := d.Place(r.STag(), to, layout.Plain(make([]byte, n))); (f == None) != inside {
			t.Fatalf("write: %v", f)
		}
		if !bytes.Equal(buf, want) {
			t.Fatal("memory is not as expected")
		}
	})
}

// The owner's own requests: bounds, rights and Protection Domain.
//
// Proves Z20: not more than was registered can be named.
func TestLocalAccess(t *testing.T) {
	table := NewTable()
	r, buf := register(t, table, Options{Access: LocalWrite, PD: pd, Base: base})
	none, _ := register(t, table, Options{PD: pd})
	void, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	local(table).LocalInvalidate(void)
	gone, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	table.Revoke(gone)
	ours := local(table)
	for _, tt := range []struct {
		name        string
		d           Domain
		r           *Region
		off, n      int
		read, write Fault
	}{
		{"all", ours, r, 0, 32, None, None},
		{"last byte", ours, r, 31, 1, None, None},
		{"one byte too far", ours, r, 32, 1, Bounds, Bounds},
		{"one before", ours, r, -1, 1, Bounds, Bounds},
		{"one too long", ours, r, 0, 33, Bounds, Bounds},
		{"highest offset", ours, r, math.MaxInt, 1, Bounds, Bounds},
		{"lowest offset", ours, r, math.MinInt, 1, Bounds, Bounds},
		{"negative length", ours, r, 0, -1, Bounds, Bounds},
		{"another Protection Domain", Domain{table, pd + 1, stream, 0}, r, 0, 1, OtherDomain, OtherDomain},
		{"another table, the same number", Domain{NewTable(), pd, stream, 0}, r, 0, 1, OtherDomain, OtherDomain},
		{"no rights", ours, none, 0, 1, None, NoLocalWrite},
		{"invalidated", ours, void, 0, 1, Invalidated, Invalidated},
		{"revoked", ours, gone, 0, 1, InvalidSTag, InvalidSTag},
		{"no region", ours, nil, 0, 1, InvalidSTag, InvalidSTag},
		{"nothing, of nothing", ours, nil, -5, 0, None, None},
	} {
		if f := tt.d.LocalCheck(tt.r, new(Term), tt.off, tt.n, false); f != tt.read {
			t.Errorf("%s: check to read: %v, want %v", tt.name, f, tt.read)
		}
		if f := tt.d.LocalCheck(tt.r, new(Term), tt.off, tt.n, true); f != tt.write {
			t.Errorf("%s: check to write: %v, want %v", tt.name, f, tt.write)
		}
		if tt.n < 0 {
			continue
		}
		var run Run
		if tt.n > 0 && tt.d.BeginLocalPlace(&run, tt.r, new(Term), tt.off, tt.n, math.MaxInt, 0) != (tt.write == None) {
			t.Errorf("%s: a Run begins: %t", tt.name, tt.write != None)
		}
		run.End()
		p := make([]byte, tt.n)
		f := tt.d.LocalLoad(into(p), tt.r, new(Term), tt.off, tt.n)
		if f != tt.read || f == None && tt.r == r && !bytes.Equal(p, buf[16+tt.off:16+tt.off+tt.n]) {
			t.Errorf("%s: load: %v, want %v; % x", tt.name, f, tt.read, p)
		}
		p = bytes.Repeat([]byte{0xee}, tt.n)
		f = tt.d.LocalPlace(tt.r, new(Term), tt.off, layout.Plain(p))
		if f != tt.write || f == None && tt.r == r && !bytes.Equal(p, buf[16+tt.off:16+tt.off+tt.n]) {
			t.Errorf("%s: place: %v, want %v; % x", tt.name, f, tt.write, buf)
		}
	}
	if want := numbered(64); !bytes.Equal(buf[:16], want[:16]) || !bytes.Equal(buf[48:], want[48:]) {
		t.Error("bytes outside have changed")
	}
}

// A range of no bytes lies in a region up to its end, and not after it.
func TestHolds(t *testing.T) {
	r := new(extent)
	r.size = 32
	for _, tt := range []struct {
		off, n int
		want   bool
	}{
		{0, 32, true}, {32, 0, true}, {0, 0, true}, {31, 1, true},
		{33, 0, false}, {32, 1, false}, {0, 33, false}, {-1, 1, false}, {-1, 0, false}, {0, -1, false},
	} {
		if got := r.holds(tt.off, tt.n); got != tt.want {
			t.Errorf("%d bytes at %d: %t", tt.n, tt.off, got)
		}
	}
}

// Proves Z16: none but the rights that were asked for; to let a peer write, the owner
// may too.
func TestRights(t *testing.T) {
	table := NewTable()
	for given, got := range map[Access]Access{
		0: 0, LocalWrite: LocalWrite, RemoteRead: RemoteRead,
		RemoteWrite: RemoteWrite | LocalWrite, RemoteRead | RemoteWrite: allRemote,
	} {
		r, _ := register(t, table, Options{Access: given, PD: pd, Base: base})
		if r.Access() != got || r.pd != pd || r.Base() != base || !r.Valid() {
			t.Errorf("%v gives %v", given, r.Access())
		}
	}
}

// Proves Z19: several STags on the same bytes, each with its own rights, bounds and stream.
func TestAliases(t *testing.T) {
	table := NewTable()
	buf := numbered(8)
	whole, _ := table.Register(buf, Options{Access: RemoteRead, PD: pd})
	part, _ := table.Register(buf[2:4], Options{Access: RemoteWrite, PD: pd, Stream: stream})
	d, other := Domain{table, pd, stream, 0}, Domain{table, pd, stream + 1, 0}
	if f := d.Place(whole.STag(), 2, layout.Plain([]byte("x"))); f != NoRemoteWrite {
		t.Error(f)
	}
	if f := d.Place(part.STag(), 0, layout.Plain([]byte("xyz"))); f != Bounds {
		t.Error(f)
	}
	if f := other.Place(part.STag(), 0, layout.Plain([]byte("x"))); f != OtherStream {
		t.Error(f)
	}
	if f := d.Place(part.STag(), 1, layout.Plain([]byte("x"))); f != None || buf[3] != 'x' {
		t.Error(f)
	}
	table.Revoke(part)
	var got [1]byte
	if f := other.Load(into(got[:]), 1, whole.STag(), 3); f != None || got[0] != 'x' {
		t.Error(f)
	}
}

// Faults have names, each its own.
func TestFaultNames(t *testing.T) {
	seen := map[string]bool{}
	for f := None; f < numFaults; f++ {
		if s := f.String(); s == "" || s == numFaults.String() || seen[s] {
			t.Errorf("%d: %v", f, f)
		}
		seen[f.String()] = true
	}
}
