package memory

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Proves D45, Z13, Z14, Z15: revoked memory is neither written nor read, by a peer or its
// owner, and the region's second revocation says so.
func TestRevoke(t *testing.T) {
	table := NewTable()
	r, buf := register(t, table, Options{Access: allRemote, PD: pd})
	d := Domain{table, pd, stream, 0}
	if table.tags.Len() != 1 || table.Revoke(r) != None || table.Revoke(r) != InvalidSTag ||
		table.tags.Len() != 0 || r.Valid() {
		t.Error("not revoked once")
	}
	if f := d.Place(r.STag(), 0, layout.Plain([]byte("x"))); f != InvalidSTag || buf[16] == 'x' {
		t.Error(f)
	}
	if f := d.Load(into(make([]byte, 1)), 1, r.STag(), 0); f != InvalidSTag {
		t.Error(f)
	}
	if f := d.LocalPlace(r, new(Term), 0, layout.Plain([]byte("x"))); f != InvalidSTag || buf[16] == 'x' {
		t.Error(f)
	}
	if f := d.LocalLoad(into(make([]byte, 1)), r, new(Term), 0, 1); f != InvalidSTag {
		t.Error(f)
	}
	if f := d.LocalInvalidate(r); f != InvalidSTag {
		t.Error(f)
	}
	if f := r.cur.Load().check(d, 0, 1, RemoteWrite); f != InvalidSTag {
		t.Errorf("found by its STag before, and judged after: %v", f)
	}
}

// Once Revoke has returned, nothing is written or read any more, whoever was at it
// at the time: the race detector watches the buffer.
//
// Proves Z13, Z14.
func TestRevokeRace(t *testing.T) {
	for name, end := range map[string]func(*Table, *Region){
		"revoked":     func(table *Table, r *Region) { table.Revoke(r) },
		"invalidated": func(table *Table, r *Region) { local(table).LocalInvalidate(r) },
		"by the peer": func(table *Table, r *Region) { local(table).Invalidate(r.STag()) },
	} {
		table := NewTable()
		r, buf := register(t, table, Options{Access: allAccess, PD: pd})
		d := Domain{table, pd, stream, 0}
		var wg sync.WaitGroup
		var began sync.WaitGroup
		for i := range 3 {
			began.Add(1)
			wg.Go(func() {
				began.Done()
				b := numbered(16)
				for f := None; f == None; {
					switch i {
					case 0:
						f = d.Place(r.STag(), 0, layout.Plain(b[:8]))
					case 1:
						f = d.Place(r.STag(), 8, layout.Plain(b[:8]))
					case 2:
						f = d.Load(into(b), len(b), r.STag(), 16)
					}
				}
			})
		}
		began.Wait()
		end(table, r)
		if at := changed(buf, &wg); at >= 0 {
			t.Errorf("%s: byte %d has changed", name, at)
		}
	}
}

// changed fills memory that is the consumer's again, waits for those who had access to it, and returns a byte that
// they have changed since, or -1.
func changed(buf []byte, wg *sync.WaitGroup) int {
	for i := range buf {
		buf[i] = byte(i)
	}
	wg.Wait()
	for i := range buf {
		if buf[i] != byte(i) {
			return i
		}
	}
	return -1
}

// A peer may invalidate what is bound to its stream, and what was offered for it and
// is not shared; each once.
//
// Proves P34, P35, P51, Z05, Z06: which STags a peer may invalidate.
func TestInvalidate(t *testing.T) {
	table := NewTable()
	table.AddStream(pd)
	free, _ := register(t, table, Options{Access: RemoteRead, PD: pd})
	offered, _ := register(t, table, Options{Access: RemoteRead | RemoteInvalidate, PD: pd})
	bound, _ := register(t, table, Options{Access: RemoteWrite, PD: pd, Stream: stream})
	own, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	other, _ := register(t, table, Options{Access: allAccess, PD: pd + 1})
	d := local(table)
	refuse := func(d Domain, r *Region, want Fault) {
		t.Helper()
		before := r.Valid()
		if f := d.Invalidate(r.STag()); f != want || r.Valid() != before {
			t.Errorf("%v, want %v; valid: %t", f, want, r.Valid())
		}
	}
	refuse(d, other, OtherDomain)
	refuse(d, own, NeverOffered)
	refuse(d, free, NotOffered) // although no other stream is there yet
	refuse(Domain{table, pd, stream + 1, 0}, bound, OtherStream)
	table.AddStream(pd) // now offered is shared
	refuse(d, offered, Shared)
	table.RemoveStream(pd)
	for _, r := range []*Region{offered, bound} {
		if f := d.Invalidate(r.STag()); f != None || r.Valid() {
			t.Errorf("%v; valid: %t", f, r.Valid())
		}
		refuse(d, r, Invalidated)
	}
	table.RemoveStream(pd)
	if len(table.streams) > 0 {
		t.Error("streams are left")
	}
	if f := d.Invalidate(0); f != InvalidSTag {
		t.Error(f)
	}
}

// Numbers of streams differ, and 0 is none of them: after the highest comes 1.
//
// Proves Z06.
func TestNewStream(t *testing.T) {
	table := NewTable()
	a, b := table.NewStream(), table.NewStream()
	table.stream = math.MaxUint32
	if c := table.NewStream(); a == 0 || b == 0 || c != 1 || a == b {
		t.Error(a, b, c)
	}
}

// A local invalidation asks for the region's Protection Domain; nothing more.
func TestLocalInvalidate(t *testing.T) {
	table := NewTable()
	r, _ := register(t, table, Options{PD: pd})
	for _, d := range []Domain{{table, pd + 1, stream, 0}, {NewTable(), pd, stream, 0}} {
		if f := d.LocalInvalidate(r); f != OtherDomain || !r.Valid() {
			t.Error(f)
		}
	}
	for range 2 {
		if f := local(table).LocalInvalidate(r); f != None || r.Valid() {
			t.Error(f)
		}
	}
}

// Proves Z09, P52: STags come from the system's source of random numbers, spread over the
// whole range: none is next to another, none comes twice.
func TestSTagsAreRandom(t *testing.T) {
	table := NewTable()
	const n = 4096
	seen, top := map[uint32]bool{}, map[uint32]int{}
	neighbors := 0
	for range n {
		r, err := table.Register(nil, Options{PD: pd})
		testrig.Must(t, err)
		s := r.STag()
		if seen[s] || s < reservedSTags {
			t.Fatalf("STag %#x", s)
		}
		if seen[s-1] || seen[s+1] {
			neighbors++
		}
		seen[s] = true
		top[s>>28]++
	}
	if neighbors > 2 || len(top) != 16 { // expected: 0.004 neighbors, 256 in each sixteenth
		t.Errorf("%d neighbors, %d sixteenths of the range", neighbors, len(top))
	}
	for k, v := range top {
		if v < n/32 || v > n/8 {
			t.Errorf("%d of %d in sixteenth %d", v, n, k)
		}
	}
}

// dice gives the numbers in turn.
func dice(numbers ...uint32) func([]byte) (int, error) {
	return func(b []byte) (int, error) {
		if len(numbers) == 0 {
			return 0, errors.New("no numbers left")
		}
		binary.BigEndian.PutUint32(b, numbers[0])
		numbers = numbers[1:]
		return len(b), nil
	}
}

// Proves Z09: neither reserved STags nor those in use nor those given back lately are given out.
func TestSTagsInUse(t *testing.T) {
	table := NewTable()
	table.random = dice(0, 1, 0xff, 0x500, 0x5ff, 0x600, 0x501, 0x600, 0x700)
	a, _ := register(t, table, Options{}) // index 0 is reserved
	b, _ := register(t, table, Options{}) // index 5 is in use, whatever the key
	table.Revoke(a)
	c, _ := register(t, table, Options{}) // 5 was given back, 6 is in use
	if a.STag() != 0x500 || b.STag() != 0x600 || c.STag() != 0x700 {
		t.Errorf("%#x %#x %#x", a.STag(), b.STag(), c.STag())
	}
	table.random = dice(0x100)
	if first, _ := register(t, table, Options{}); first.STag() != 0x100 { // the least that is not reserved
		t.Errorf("%#x", first.STag())
	}
	if _, err := table.Register(nil, Options{}); err == nil || table.tags.Len() != 3 {
		t.Errorf("without a random number: %v", err)
	}
}

// Proves Z09: the index of an STag given back may be used again after Quarantine others, not before.
// What is kept for that is bounded.
func TestQuarantine(t *testing.T) {
	table := NewTable()
	next := uint32(2)
	table.random = func(b []byte) (int, error) {
		binary.BigEndian.PutUint32(b, next<<keyBits)
		next++
		return 4, nil
	}
	turn := func() uint32 {
		r, err := table.Register(nil, Options{})
		testrig.Must(t, err)
		table.Revoke(r)
		return r.STag() >> keyBits
	}
	for i := range uint32(Quarantine) {
		if s := turn(); s != i+2 {
			t.Fatalf("STag %d", s)
		}
	}
	next = 2
	if s := turn(); s != Quarantine+2 {
		t.Errorf("STag %d again too early", s)
	}
	next = 2
	if s := turn(); s != 2 {
		t.Errorf("STag %d, and 2 is free", s)
	}
	if len(table.order) != Quarantine || len(table.retired) != Quarantine {
		t.Errorf("%d and %d kept", len(table.order), len(table.retired))
	}
}

// A region whose end has no tagged offset cannot be registered; nor does a buffer
// lend more than its length.
//
// Proves Z20.
func TestRegister(t *testing.T) {
	table := NewTable()
	for base, ok := range map[uint64]bool{
		0: true, math.MaxUint64 - 10: true, math.MaxUint64 - 9: false, math.MaxUint64: false,
	} {
		if _, err := table.Register(make([]byte, 10), Options{Base: base}); (err == nil) != ok || !ok &&
			!errors.Is(err, ErrWrap) {
			t.Errorf("base %#x: %v", base, err)
		}
	}
	if _, err := table.Register(nil, Options{Base: math.MaxUint64}); err != nil {
		t.Error(err)
	}
	r, _ := table.Register(make([]byte, 4, 100), Options{})
	if f := (Domain{Table: table}).LocalCheck(r, new(Term), 0, 5, false); f != Bounds {
		t.Error(f)
	}
	if _, err := table.Register(nil, Options{Access: allAccess + 1}); !errors.Is(err, ErrAccess) {
		t.Errorf("a right that does not exist: %v", err)
	}
}
