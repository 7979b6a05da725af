package memory

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

const (
	pd, stream = 7, 70
	base       = 0x10000
)

// numbered returns n octets, none of them zero.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%251) + 1
	}
	return b
}

// register has a region of the middle 32 of 64 octets.
func register(t rapid.TB, table *Table, o Options) (*Region, []byte) {
	t.Helper()
	buf := numbered(64)
	r, err := table.Register(buf[16:48], o)
	if err != nil {
		t.Fatal(err)
	}
	return r, buf
}

const allRemote = LocalWrite | RemoteWrite | RemoteRead

// Proves D39, D40, D44, P24, P25, Z05, Z06, Z10, Z11, Z16, Z18: which accesses of a peer are
// refused, and why; the checks come in this order.
func TestRemoteAccess(t *testing.T) {
	table := NewTable()
	region, buf := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	bound, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base, Stream: stream})
	readable, _ := register(t, table, Options{Access: RemoteRead, PD: pd, Base: base})
	writable, _ := register(t, table, Options{Access: RemoteWrite, PD: pd, Base: base})
	local, _ := register(t, table, Options{Access: LocalWrite, PD: pd, Base: base})
	none, _ := register(t, table, Options{PD: pd, Base: base})
	gone, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	void, _ := register(t, table, Options{Access: allRemote, PD: pd, Base: base})
	table.Revoke(gone)
	void.LocalInvalidate(pd)
	ours := Domain{table, pd, stream}
	for _, tt := range []struct {
		name        string
		d           Domain
		r           *Region
		to          uint64
		n           int
		write, read Fault
	}{
		{"all", ours, region, base, 32, None, None},
		{"first octet", ours, region, base, 1, None, None},
		{"last octet", ours, region, base + 31, 1, None, None},
		{"one before", ours, region, base - 1, 1, Bounds, Bounds},
		{"one behind", ours, region, base + 32, 1, Bounds, Bounds},
		{"one too long", ours, region, base, 33, Bounds, Bounds},
		{"over the end", ours, region, base + 31, 2, Bounds, Bounds},
		{"TO 0", ours, region, 0, 1, Bounds, Bounds},
		{"last TO", ours, region, math.MaxUint64, 1, Wrap, Wrap},
		{"wrap into the region", ours, region, math.MaxUint64 - 1, 64, Wrap, Wrap},
		{"bound to this stream", ours, bound, base, 1, None, None},
		{"bound to another stream", Domain{table, pd, stream + 1}, bound, base, 1, Association, Association},
		{"another Protection Domain", Domain{table, pd + 1, stream}, region, base, 1, Association, Association},
		{"another Protection Domain, same stream", Domain{table, pd + 1, stream}, bound, base, 1, Association, Association},
		{"revoked", ours, gone, base, 1, InvalidSTag, InvalidSTag},
		{"invalidated", ours, void, base, 1, InvalidSTag, InvalidSTag},
		{"read only", ours, readable, base, 1, AccessRights, None},
		{"write only", ours, writable, base, 1, None, AccessRights},
		{"local only", ours, local, base, 1, AccessRights, AccessRights},
		{"no rights", ours, none, base, 1, AccessRights, AccessRights},
		{"association before rights", Domain{table, pd + 1, stream}, local, base, 1, Association, Association},
		{"rights before bounds", ours, local, 0, 1, AccessRights, AccessRights},
		{"another table", Domain{NewTable(), pd, stream}, region, base, 1, InvalidSTag, InvalidSTag},
		{"nothing, of nothing", Domain{table, pd + 1, stream}, gone, math.MaxUint64, 0, None, None},
	} {
		p := make([]byte, tt.n)
		if f := tt.d.Place(tt.r.STag(), tt.to, p); f != tt.write {
			t.Errorf("%s: write: %v, want %v", tt.name, f, tt.write)
		}
		if f := tt.d.CheckRead(tt.r.STag(), tt.to, uint32(tt.n)); f != tt.read {
			t.Errorf("%s: request to read: %v, want %v", tt.name, f, tt.read)
		}
		if f := tt.d.Load(p, tt.r.STag(), tt.to); f != tt.read {
			t.Errorf("%s: read: %v, want %v", tt.name, f, tt.read)
		}
	}
	if want := numbered(64); !bytes.Equal(buf[:16], want[:16]) || !bytes.Equal(buf[48:], want[48:]) {
		t.Error("octets outside have changed")
	}
}

// Any access of a peer, against arithmetic without bounds.
//
// Proves Z10, Z11, Z12: what is allowed lies in the region, octet by octet, and all of
// it; nothing else changes or is read.
func TestAnyRemoteAccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable()
		at := rapid.SampledFrom([]uint64{0, 1, base, math.MaxUint64 - 40}).Draw(t, "base")
		r, buf := register(t, table, Options{Access: allRemote, PD: pd, Base: at})
		d := Domain{table, pd, stream}
		off := rapid.IntRange(-40, 80).Draw(t, "offset")
		n := rapid.IntRange(1, 80).Draw(t, "octets")
		inside := off >= 0 && off+n <= 32
		to := at + uint64(off)
		got := make([]byte, n)
		if f := d.Load(got, r.STag(), to); (f == None) != inside {
			t.Fatalf("read: %v", f)
		}
		want := numbered(64)
		if inside && !bytes.Equal(got, want[16+off:16+off+n]) || !inside && !bytes.Equal(got, make([]byte, n)) {
			t.Fatalf("read % x", got)
		}
		if inside {
			clear(want[16+off : 16+off+n])
		}
		if f := d.Place(r.STag(), to, make([]byte, n)); (f == None) != inside {
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
	void.LocalInvalidate(pd)
	for _, tt := range []struct {
		name        string
		r           *Region
		pd          uint32
		off, n      int
		read, write Fault
	}{
		{"all", r, pd, 0, 32, None, None},
		{"last octet", r, pd, 31, 1, None, None},
		{"one behind", r, pd, 32, 1, Bounds, Bounds},
		{"one before", r, pd, -1, 1, Bounds, Bounds},
		{"one too long", r, pd, 0, 33, Bounds, Bounds},
		{"highest offset", r, pd, math.MaxInt, 1, Bounds, Bounds},
		{"lowest offset", r, pd, math.MinInt, 1, Bounds, Bounds},
		{"negative length", r, pd, 0, -1, Bounds, Bounds},
		{"another Protection Domain", r, pd + 1, 0, 1, Association, Association},
		{"no rights", none, pd, 0, 1, None, AccessRights},
		{"invalidated", void, pd, 0, 1, InvalidSTag, InvalidSTag},
		{"no region", nil, pd, 0, 1, InvalidSTag, InvalidSTag},
		{"nothing, of nothing", nil, pd, -5, 0, None, None},
	} {
		b, f := tt.r.Local(tt.pd, tt.off, tt.n, false)
		if f != tt.read || f == None && (len(b) != tt.n || cap(b) != tt.n) {
			t.Errorf("%s: read: %v, %d octets", tt.name, f, len(b))
		}
		if _, f := tt.r.Local(tt.pd, tt.off, tt.n, true); f != tt.write {
			t.Errorf("%s: write: %v, want %v", tt.name, f, tt.write)
		}
		if tt.n < 0 {
			continue
		}
		if f := tt.r.LocalPlace(tt.pd, tt.off, make([]byte, tt.n)); f != tt.write {
			t.Errorf("%s: place: %v, want %v", tt.name, f, tt.write)
		}
	}
	if want := numbered(64); !bytes.Equal(buf[:16], want[:16]) || !bytes.Equal(buf[48:], want[48:]) {
		t.Error("octets outside have changed")
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
		if r.Access() != got || r.PD() != pd || r.Base() != base || !r.Valid() {
			t.Errorf("%v gives %v", given, r.Access())
		}
	}
}

// Proves Z19: several STags on the same octets, each with its own rights, bounds and stream.
func TestAliases(t *testing.T) {
	table := NewTable()
	buf := numbered(8)
	whole, _ := table.Register(buf, Options{Access: RemoteRead, PD: pd})
	part, _ := table.Register(buf[2:4], Options{Access: RemoteWrite, PD: pd, Stream: stream})
	d, other := Domain{table, pd, stream}, Domain{table, pd, stream + 1}
	if f := d.Place(whole.STag(), 2, []byte("x")); f != AccessRights {
		t.Error(f)
	}
	if f := d.Place(part.STag(), 0, []byte("xyz")); f != Bounds {
		t.Error(f)
	}
	if f := other.Place(part.STag(), 0, []byte("x")); f != Association {
		t.Error(f)
	}
	if f := d.Place(part.STag(), 1, []byte("x")); f != None || buf[3] != 'x' {
		t.Error(f)
	}
	table.Revoke(part)
	var got [1]byte
	if f := other.Load(got[:], whole.STag(), 3); f != None || got[0] != 'x' {
		t.Error(f)
	}
}

// Faults have names.
func TestFaultNames(t *testing.T) {
	for f := None; f <= NotInvalidatable; f++ {
		if f.String() == "" || f.String() == Fault(99).String() {
			t.Errorf("%d: %v", f, f)
		}
	}
}
